"""What making, updating and completing a bag have in common: their events, and a change that is whole or not made."""
