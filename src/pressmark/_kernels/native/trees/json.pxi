# JSON of objects, arrays and strings without escapes; everything else is left to the standard library.


def _refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def _once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs more than once")
    return found


cdef object _decode = None  # made on first use: most runs read no JSON
cdef int _DEEPEST_JSON = 32


cdef class _PlainJson:
    cdef const uint8_t *at
    cdef const uint8_t *end

    cdef inline uint8_t token(self) noexcept:
        """Return the next byte that is not white space, 0 at the end."""
        while self.at < self.end and (self.at[0] == 32 or self.at[0] == 10 or self.at[0] == 9 or self.at[0] == 13):
            self.at += 1
        return self.at[0] if self.at < self.end else 0

    cdef inline uint8_t after(self) noexcept:
        """Return the next token, and skip it."""
        cdef uint8_t token = self.token()
        self.at += 1
        return token

    cdef object text(self):
        """Return the string that begins here, or None."""
        cdef const uint8_t *begin
        if self.after() != 34:
            return None
        begin = self.at
        while self.at < self.end and self.at[0] != 34 and self.at[0] != 92 and self.at[0] >= 32:
            self.at += 1
        if self.at >= self.end or self.at[0] != 34:
            return None
        self.at += 1
        return PyUnicode_DecodeUTF8(<const char *>begin, self.at - 1 - begin, NULL)

    cdef object value(self, int depth):
        """Return the value that begins here; None for any other than an object, an array or a string."""
        cdef uint8_t token = self.token()
        cdef dict found
        cdef list items
        cdef object key, item
        cdef Py_ssize_t count = 0
        if token == 34:
            return self.text()
        if depth > _DEEPEST_JSON or (token != 123 and token != 91):
            return None
        self.at += 1
        if token == 91:
            items = []
            if self.token() == 93:
                self.at += 1
                return items
            while True:
                item = self.value(depth + 1)
                if item is None:
                    return None
                items.append(item)
                token = self.after()
                if token != 44:
                    return items if token == 93 else None
        found = {}
        if self.token() == 125:
            self.at += 1
            return found
        while True:
            key = self.text() if self.token() == 34 else None
            if key is None or self.after() != 58:
                return None
            item = self.value(depth + 1)
            if item is None:
                return None
            found[key] = item
            count += 1
            token = self.after()
            if token != 44:
                return found if token == 125 and len(found) == count else None


def read_json(bytes data not None):
    """Return the value of a JSON text in UTF-8.

    :raises ValueError: it is not one, or a key occurs more than once in an object
    :raises RecursionError: its objects and arrays are nested too deeply
    """
    global _decode
    cdef _PlainJson plain = _PlainJson.__new__(_PlainJson)
    plain.at = <const uint8_t *><char *>data
    plain.end = plain.at + len(data)
    found = plain.value(0)
    if found is None or plain.token() != 0 or plain.at < plain.end:
        if _decode is None:
            import json

            _decode = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once).decode
        return _decode(data.decode())
    return found
