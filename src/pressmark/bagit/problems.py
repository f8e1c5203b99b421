"""Every kind of problem that a bag can have: a stable word, how grave it is, and where the specification says so.

The specification is the BagIt File Packaging Format 1.0 (draft-kunze-bagit-17).
"""

from __future__ import annotations

from pressmark.reports import ERROR, WARNING, Kind, Kinds

__all__ = ["KINDS", "problem"]

KINDS = Kinds(
    {
        # --- the declaration, bagit.txt
        "declaration-missing": Kind(ERROR, "2.1.1", "there is no bagit.txt"),
        "declaration-malformed": Kind(ERROR, "2.1.1", "bagit.txt is not exactly the two lines that are required"),
        "declaration-label": Kind(WARNING, "2.1.1", "a label in bagit.txt is spelled in another case"),
        "version-unknown": Kind(ERROR, "2.1.1", "unsupported BagIt version; 0.93 to 1.0 are supported"),
        "encoding-unknown": Kind(ERROR, "2.1.1", "the tag files' character encoding is not known"),
        "encoding-not-utf8": Kind(WARNING, "2.1.1", "the tag files' character encoding is not UTF-8"),
        # --- structure
        "payload-directory-missing": Kind(ERROR, "2.1.2", "there is no directory data/"),
        "payload-manifest-missing": Kind(ERROR, "2.1.3", "there is no payload manifest"),
        "algorithm-name": Kind(ERROR, "2.4", "the algorithm in a manifest's name is not in its normalized form"),
        "algorithm-repeated": Kind(ERROR, "2.4", "two manifests have the same algorithm, under different names"),
        "algorithm-unknown": Kind(
            ERROR, "3", "a manifest's checksums cannot be verified, its algorithm is not known here"
        ),
        "algorithm-unregistered": Kind(WARNING, "2.4", "a manifest's algorithm is not in the IANA registry"),
        # --- text
        "bom": Kind(ERROR, "2.3", "a tag file begins with a byte-order mark that its encoding does not need"),
        "bom-missing": Kind(
            ERROR, "2.3", "a UTF-16 or UTF-32 tag file has no byte-order mark that says which byte is first"
        ),
        "undecodable": Kind(ERROR, "2.3", "a tag file is not in the encoding that bagit.txt names"),
        "line-unterminated": Kind(WARNING, "2.3", "the last line of a tag file is not terminated"),
        "line-too-long": Kind(ERROR, "", "a line is longer than any file's path can be; it was not read"),
        # --- manifests
        "line-blank": Kind(ERROR, "2.1.3", "a blank line in a manifest or fetch file"),
        "line-malformed": Kind(ERROR, "2.1.3", "a line of a manifest or fetch file has not the form that is required"),
        "checksum-malformed": Kind(ERROR, "2.1.3", "a checksum is not the hex of its algorithm's length"),
        "md5sum-mark": Kind(WARNING, "6.1.3", "a line has the asterisk or backslash that md5sum writes"),
        "path-unsafe": Kind(ERROR, "5.1", "a path leads, or might lead, outside of the bag"),
        "path-outside-payload": Kind(ERROR, "2.1.3", "a payload manifest lists a file outside of data/"),
        "path-not-canonical": Kind(WARNING, "2.1.3", "a path is written with needless . or slashes"),
        "path-duplicate": Kind(ERROR, "2.1.3", "a manifest or fetch file lists a file more than once"),
        "path-directory": Kind(ERROR, "2.1.3", "a manifest lists a directory"),
        "percent-raw": Kind(WARNING, "2.1.3", "a percent sign in a path is not encoded"),
        "problems-omitted": Kind(ERROR, "", "there are more problems of a kind than are listed"),
        "tag-manifest-payload": Kind(ERROR, "2.2.1", "a tag manifest lists a payload file"),
        "tag-manifest-itself": Kind(ERROR, "2.2.1", "a tag manifest lists a tag manifest"),
        "tag-manifest-omission": Kind(ERROR, "2.2.1", "a tag manifest does not list a payload manifest"),
        "tag-manifests-differ": Kind(WARNING, "2.2.1", "tag manifests do not list the same files"),
        "tag-manifest-algorithms": Kind(WARNING, "2.2.1", "tag manifests have other algorithms than payload manifests"),
        "tag-file-unlisted": Kind(WARNING, "2.2.1", "a tag file is in no tag manifest"),
        # --- files
        "file-missing": Kind(ERROR, "3", "a file that a manifest lists is not there"),
        "file-not-fetched": Kind(ERROR, "3", "a file that fetch.txt lists is not there yet"),
        "file-unlisted": Kind(ERROR, "3", "a payload file is in no payload manifest"),
        "file-not-everywhere": Kind(ERROR, "2.1.3", "a payload file is in some payload manifests and not in others"),
        "file-unreadable": Kind(ERROR, "3", "a file cannot be read"),
        "file-special": Kind(ERROR, "3", "a named pipe, socket or device; it was not opened"),
        "file-changing": Kind(ERROR, "3", "a file changed while it was read"),
        "checksum-mismatch": Kind(ERROR, "3", "a file does not have the checksum that a manifest says"),
        "link-inside": Kind(WARNING, "5.1", "a symbolic link to a file or directory of the bag"),
        "link-outside": Kind(ERROR, "5.1", "a symbolic link that leads outside of the bag; it was not followed"),
        "link-dangling": Kind(ERROR, "5.1", "a symbolic link that leads nowhere"),
        "link-loop": Kind(ERROR, "5.1", "a symbolic link to a directory that holds it; it was not entered"),
        "links-too-many": Kind(
            ERROR, "5.1", "symbolic links make more files than were looked at; the rest was left out"
        ),
        "name-normalized": Kind(WARNING, "6.1.1", "a file's name and a manifest's differ in Unicode normalization"),
        "name-clash": Kind(WARNING, "6.1.1", "names differ only in case or Unicode normalization"),
        "directory-empty": Kind(WARNING, "2.1.3", "an empty directory, which no manifest can list"),
        # --- metadata, bag-info.txt
        "info-malformed": Kind(ERROR, "2.2.2", "a line of bag-info.txt is no metadata element"),
        "info-whitespace": Kind(
            ERROR, "2.2.2", "blanks around a label in bag-info.txt, or not just one after its colon"
        ),
        "info-long-line": Kind(WARNING, "2.2.2", "lines of bag-info.txt have more than 79 characters"),
        "element-alone": Kind(WARNING, "2.2.2", "there is a Bag-Count, and no Bag-Group-Identifier beside it"),
        "element-repeated": Kind(WARNING, "2.2.2", "an element of bag-info.txt that should not be repeated is"),
        "element-malformed": Kind(WARNING, "2.2.2", "an element of bag-info.txt has not the form that is described"),
        "info-too-long": Kind(ERROR, "", "bag-info.txt is larger than any that people can read; it was not read"),
        "oxum-malformed": Kind(ERROR, "2.2.2", "Payload-Oxum is not octets, a full stop, and streams"),
        "oxum-repeated": Kind(ERROR, "2.2.2", "Payload-Oxum is there more than once"),
        "oxum-mismatch": Kind(ERROR, "2.2.2", "Payload-Oxum is not what the payload adds up to"),
        "oxum-missing": Kind(ERROR, "2.2.2", "there is no Payload-Oxum to check"),
        # --- fetch.txt
        "fetch-url": Kind(ERROR, "2.2.3", "a URL is not an absolute URI"),
        "fetch-url-odd": Kind(WARNING, "2.2.3", "a URL names no host"),
        "fetch-unlisted": Kind(ERROR, "2.2.3", "fetch.txt lists a file that is not in every payload manifest"),
        "fetch-tag-file": Kind(ERROR, "2.2.3", "fetch.txt lists a tag file"),
        "fetch-length": Kind(WARNING, "5.3", "a file has another length than fetch.txt says"),
        "fetch-failed": Kind(ERROR, "2.2.3", "a file that fetch.txt lists could not be fetched"),
        "fetch-refused": Kind(ERROR, "5.2", "fetch.txt lists what is not allowed; it was not fetched"),
        "fetch-too-long": Kind(ERROR, "5.3", "a server sends more than a file may have; it was not taken"),
        "file-unwritable": Kind(ERROR, "", "a file could not be written"),
        "disk-full": Kind(
            ERROR, "", "there is no space left on the disk; make room and run the same command again, which goes on"
        ),
        # --- BagIt Profiles; the sections are those of a profile
        "profile-data-not-empty": Kind(ERROR, "Data-Empty", "the profile wants an empty payload"),
        "profile-element-missing": Kind(ERROR, "Bag-Info", "bag-info.txt has not an element that the profile requires"),
        "profile-element-recommended": Kind(
            WARNING, "Bag-Info", "bag-info.txt has not an element that the profile recommends"
        ),
        "profile-element-repeated": Kind(ERROR, "Bag-Info", "the profile forbids to repeat an element of bag-info.txt"),
        "profile-element-value": Kind(ERROR, "Bag-Info", "the profile forbids a value of an element of bag-info.txt"),
        "profile-fetch-forbidden": Kind(ERROR, "Allow-Fetch.txt", "the profile forbids a fetch.txt"),
        "profile-fetch-missing": Kind(ERROR, "Fetch.txt-Required", "the profile requires a fetch.txt"),
        "profile-identifier": Kind(
            ERROR, "BagIt-Profile-Identifier", "bag-info.txt does not name the profile by its identifier"
        ),
        "profile-manifest-forbidden": Kind(ERROR, "Manifests-Allowed", "the profile forbids a payload manifest"),
        "profile-manifest-missing": Kind(ERROR, "Manifests-Required", "the profile requires a payload manifest"),
        "profile-payload-file-forbidden": Kind(ERROR, "Payload-Files-Allowed", "the profile forbids a payload file"),
        "profile-payload-file-missing": Kind(
            ERROR, "Payload-Files-Required", "the profile requires a payload file or directory"
        ),
        "profile-serialization": Kind(ERROR, "Serialization", "the profile wants the bag serialized in another way"),
        "profile-tag-file-forbidden": Kind(ERROR, "Tag-Files-Allowed", "the profile forbids a tag file"),
        "profile-tag-file-missing": Kind(ERROR, "Tag-Files-Required", "the profile requires a tag file"),
        "profile-tag-manifest-forbidden": Kind(ERROR, "Tag-Manifests-Allowed", "the profile forbids a tag manifest"),
        "profile-tag-manifest-missing": Kind(ERROR, "Tag-Manifests-Required", "the profile requires a tag manifest"),
        "profile-unknown": Kind(WARNING, "", "the profile has what its specification does not know; not checked"),
        "profile-version": Kind(ERROR, "Accept-BagIt-Version", "the profile does not accept the bag's BagIt version"),
        # --- serialised bags
        "archive-malformed": Kind(ERROR, "", "an archive is damaged, is none, or has not one directory at its top"),
        "archive-member": Kind(ERROR, "", "a member of an archive cannot be unpacked safely beside the others"),
        "archive-limit": Kind(ERROR, "", "an archive asks for more than is read; unpack it if you trust it"),
        "archive-extra": Kind(WARNING, "", "bytes before or behind an archive belong to none of its members"),
        # --- what was left behind
        "change-unfinished": Kind(ERROR, "", "a change of the bag was interrupted; run the same command again"),
    }
)

#: Makes a problem of one of these kinds; paths are relative to the bag's base directory.
problem = KINDS.problem
