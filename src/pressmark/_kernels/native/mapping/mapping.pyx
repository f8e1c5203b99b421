"""Identifiers to paths and back: columns of byte strings, and the kernels of all layouts."""

from array import array

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_New
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy

from pressmark._kernels.native._digests cimport (
    algorithm_number,
    current_level,
    digest_column,
    digest_size,
    permutes_bytes,
    pm_level,
)

__all__ = [
    "CleanPathMap",
    "CleanPathUnmap",
    "DifferentialMap",
    "DirectMap",
    "FlatOmitPrefixMap",
    "HashAndIdMap",
    "HashAndIdUnmap",
    "HashedMap",
    "Inverse",
    "Kernel",
    "NTupleOmitPrefixMap",
    "ByteColumn",
    "PairtreeClean",
    "PairtreeMap",
    "PairtreeUnclean",
    "PairtreeUnmap",
    "VitroDecodeFilename",
    "VitroEncodeFilename",
    "VitroMap",
    "VitroUnmap",
    "row_ends",
]


cdef extern from "Python.h":
    # These use borrowed references, or one that a list will own: counting references costs as much as the rest of the
    # loop.
    bint PyUnicode_Check(PyObject *)
    bint PyBytes_Check(PyObject *)
    bint PyUnicode_IS_COMPACT_ASCII(PyObject *)
    int PyUnicode_KIND(PyObject *)
    void *PyUnicode_DATA(PyObject *)
    uint32_t PyUnicode_READ(int, void *, Py_ssize_t)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject *)
    char *PyBytes_AS_STRING(PyObject *)
    Py_ssize_t PyBytes_GET_SIZE(PyObject *)
    PyObject *PyUnicode_New(Py_ssize_t, uint32_t) except NULL
    PyObject *PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *) except NULL
    void PyList_SET_ITEM(object, Py_ssize_t, PyObject *)
    Py_ssize_t PySequence_Fast_GET_SIZE(object)
    PyObject *PySequence_Fast_GET_ITEM(object, Py_ssize_t)


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define PM_GIL_DISABLED 1
    #else
    #define PM_GIL_DISABLED 0
    #endif
    """
    bint GIL_DISABLED "PM_GIL_DISABLED"
    Py_ssize_t PY_SSIZE_T_MAX


cdef extern from "mapping/kernel.h":
    int64_t PM_MAX_IDENTIFIER_BYTES
    int64_t PM_MAX_PATH_BYTES
    enum:
        PM_ERROR_NOT_TEXT
        PM_ERROR_SURROGATE
    const uint8_t pm_lower[256]
    const uint8_t pm_clean_dangerous[256]
    uint8_t *pm_put_utf8(uint8_t *, uint32_t) noexcept nogil
    int pm_map_column(pm_map_item, const void *, int64_t, const pm_column *, pm_column *, pm_errors *) noexcept nogil
    int pm_check_inverse(const pm_column *, const pm_column *, const pm_column *, const pm_errors *,
                         pm_column *, pm_errors *) noexcept nogil


cdef extern from "mapping/lines.h":
    int pm_cut_lines(const uint8_t *, int64_t, uint8_t, pm_column *) noexcept nogil
    int pm_join_lines(const pm_column *, const pm_column *, uint8_t, const int64_t *, int64_t,
                      pm_bytes *) noexcept nogil
    int64_t pm_count_byte(const uint8_t *, int64_t, uint8_t) noexcept nogil
    int64_t pm_find_rows(const uint8_t *, int64_t, uint8_t, bint, int64_t *) noexcept nogil
    int pm_cut_fields(const uint8_t *, int64_t, uint8_t, bint, int64_t, int64_t, pm_column *) noexcept nogil
    int64_t pm_joined_size(int64_t, const pm_column *, uint8_t, bint) noexcept nogil
    void pm_join_rows(const uint8_t *, int64_t, const int64_t *, const pm_column *, uint8_t, bint,
                      uint8_t *) noexcept nogil


# --- columns ------------------------------------------------------------------------------------------------


cdef class ByteColumn:
    """A column of byte strings: one contiguous buffer and int64 offsets, as Arrow's ``large_binary``."""

    # The column is all zeros until one of the constructors below fills it, and never changes afterwards. The loops that
    # read it therefore need neither a lock nor the GIL.

    def __dealloc__(self):
        pm_free_column(&self.column)

    @classmethod
    def from_texts(cls, texts, Py_ssize_t start=0, Py_ssize_t stop=PY_SSIZE_T_MAX):
        """Return a column of items that are ``str`` or ``bytes``, and the errors.

        A ``str`` is encoded as UTF-8, and surrogates of ``os.fsdecode`` become their bytes. An item that cannot be
        encoded is empty in the column and has an error.

        :param texts: a list or tuple, of which the items from ``start`` to ``stop`` are used
        """
        cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
        # Without a GIL another thread may change the list meanwhile, so the part is copied.
        cdef object items = texts[start:stop] if GIL_DISABLED else texts
        cdef Py_ssize_t first = 0 if GIL_DISABLED else start
        cdef Py_ssize_t index, count = max(0, min(stop - start, PySequence_Fast_GET_SIZE(items) - first))
        cdef Py_ssize_t position
        cdef pm_column *column = &packed.column
        cdef PyObject *item
        cdef list errors = []
        # Most identifiers have two or three dozen bytes. The buffer grows for longer ones.
        if pm_new_column(column, count, 32 * count) < 0:
            raise MemoryError
        for index in range(count):
            item = PySequence_Fast_GET_ITEM(items, first + index)
            if PyUnicode_Check(item):
                if PyUnicode_IS_COMPACT_ASCII(item):
                    if pm_append(&column.bytes, PyUnicode_DATA(item), PyUnicode_GET_LENGTH(item)) < 0:
                        raise MemoryError
                else:
                    position = _append_utf8(&column.bytes, item)
                    if position >= 0:
                        errors.append((index, PM_ERROR_SURROGATE, position))
            elif PyBytes_Check(item):
                if pm_append(&column.bytes, PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item)) < 0:
                    raise MemoryError
            else:
                errors.append((index, PM_ERROR_NOT_TEXT, -1))
            pm_end_item(column)
        return packed, errors

    @classmethod
    def from_lines(cls, bytes block not None, bytes delimiter not None):
        """Split ``block`` at each ``delimiter``, a single byte; the last item need not end with it."""
        cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
        cdef const uint8_t *data = block
        cdef int64_t size = len(block)
        cdef uint8_t byte = delimiter[0]
        cdef int status
        with nogil:
            status = pm_cut_lines(data, size, byte, &packed.column)
        if status < 0:
            raise MemoryError
        return packed

    @classmethod
    def from_fields(
        cls, bytes rows not None, bytes separator not None, bint quotes, int64_t index, int64_t width
    ):
        """Return the value of field ``index`` of each row, or None if a row does not have ``width`` fields.

        None also if text follows the closing quote of the field.

        :param rows: whole rows, as :func:`row_ends` finds them; a carriage return before the line feed belongs to the
            end of the row
        :param separator: a single byte
        :param quotes: fields may be quoted as in CSV
        """
        cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
        cdef const uint8_t *data = rows
        cdef int64_t size = len(rows)
        cdef uint8_t byte = separator[0]
        cdef int status
        with nogil:
            status = pm_cut_fields(data, size, byte, quotes, index, width, &packed.column)
        if status < 0:
            raise MemoryError
        return packed if status else None

    @classmethod
    def from_buffers(cls, bytes data not None, const int64_t[::1] offsets not None):
        """Return the column of ``data`` and an ``array('q')`` of n + 1 ascending offsets into it."""
        cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
        cdef Py_ssize_t count = offsets.shape[0] - 1
        cdef Py_ssize_t index
        cdef const uint8_t *start = data
        if pm_new_column(&packed.column, count, len(data)) < 0:
            raise MemoryError
        for index in range(count):
            if pm_append(&packed.column.bytes, start + offsets[index], offsets[index + 1] - offsets[index]) < 0:
                raise MemoryError
            pm_end_item(&packed.column)
        return packed

    def buffers(self):
        """Return the contiguous data and an ``array('q')`` of n + 1 offsets into it."""
        cdef pm_column *column = &self.column
        offsets = array("q")
        offsets.frombytes(PyBytes_FromStringAndSize(<char *>column.offsets, (column.count + 1) * sizeof(int64_t)))
        return PyBytes_FromStringAndSize(<char *>column.bytes.data, column.bytes.size), offsets

    def to_texts(self):
        """Return the items as ``str``; bytes that are not UTF-8 become the surrogates of ``os.fsdecode``."""
        cdef pm_column *column = &self.column
        cdef list texts = PyList_New(column.count)
        cdef PyObject *text
        cdef Py_ssize_t index
        cdef int64_t length
        cdef const uint8_t *item
        # Nearly always a single check of the whole buffer replaces one for each item.
        cdef bint all_ascii = pm_is_ascii(column.bytes.data, column.bytes.size)
        for index in range(column.count):
            item = column.bytes.data + column.offsets[index]
            length = column.offsets[index + 1] - column.offsets[index]
            if all_ascii or pm_is_ascii(item, length):
                text = PyUnicode_New(length, 127)
                # The empty string is shared and must not be written to.
                if length > 0:
                    memcpy(PyUnicode_DATA(text), item, length)
            else:
                text = PyUnicode_DecodeUTF8(<const char *>item, length, "surrogateescape")
            PyList_SET_ITEM(texts, index, text)
        return texts

    def to_lines(self, bytes delimiter not None, skip=(), ByteColumn before=None):
        """Return the items, each followed by ``delimiter``.

        :param skip: the ascending indices of items to leave out
        :param before: a column of the same length; each line then starts with its item and a TAB
        """
        cdef pm_bytes out
        out.data = NULL
        out.size = out.capacity = 0
        cdef const pm_column *first = NULL
        if before is not None:
            if before.column.count != self.column.count:
                raise ValueError("columns of different lengths")
            first = &before.column
        # The array owns the indices while the loop runs without the GIL. The extra item keeps its address from being
        # NULL.
        cdef const int64_t[::1] skipped = array("q", [*skip, -1])
        cdef int64_t skip_count = skipped.shape[0] - 1
        cdef uint8_t byte = delimiter[0]
        cdef int status
        with nogil:
            status = pm_join_lines(first, &self.column, byte, &skipped[0], skip_count, &out)
        try:
            if status < 0:
                raise MemoryError
            return PyBytes_FromStringAndSize(<char *>out.data, out.size)
        finally:
            free(out.data)

    def to_rows(self, bytes rows not None, const int64_t[::1] ends not None, bytes separator not None, bint quotes):
        """Return each of ``rows`` with an item as a new last field.

        :param rows: whole rows; a carriage return before the line feed belongs to the end of the row
        :param ends: the offset after each row, as :func:`row_ends` returns them
        :param separator: a single byte
        :param quotes: quote fields as CSV requires
        """
        if ends.shape[0] != self.column.count:
            raise ValueError("as many items as rows are required")
        if self.column.count == 0:
            return b""
        cdef const uint8_t *data = rows
        cdef int64_t size = ends[ends.shape[0] - 1]
        cdef int64_t joined
        cdef uint8_t byte = separator[0]
        cdef const int64_t *end = &ends[0]
        with nogil:
            joined = pm_joined_size(size, &self.column, byte, quotes)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, joined)
        cdef uint8_t *written = <uint8_t *>PyBytes_AS_STRING(<PyObject *>out)
        with nogil:
            # Usually no item needs quotes.
            quotes = joined > size + self.column.bytes.size + self.column.count
            pm_join_rows(data, size, end, &self.column, byte, quotes, written)
        return out

    def blanked(self, indices):
        """Return a copy in which the items at ``indices`` are empty."""
        cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
        cdef pm_column *column = &self.column
        cdef set chosen = set(indices)
        cdef Py_ssize_t index
        if pm_new_column(&packed.column, column.count, column.bytes.size) < 0:
            raise MemoryError
        for index in range(column.count):
            if index not in chosen and pm_append(
                &packed.column.bytes,
                column.bytes.data + column.offsets[index],
                column.offsets[index + 1] - column.offsets[index],
            ) < 0:
                raise MemoryError
            pm_end_item(&packed.column)
        return packed

    def indices_containing(self, bytes byte not None):
        """Return the ascending indices of the items that contain ``byte``."""
        cdef pm_column *column = &self.column
        cdef list found = []
        cdef Py_ssize_t index = 0
        cdef int64_t at = 0
        cdef const uint8_t *hit
        while at < column.bytes.size:
            hit = <const uint8_t *>memchr(column.bytes.data + at, byte[0], column.bytes.size - at)
            if hit == NULL:
                break
            at = hit - column.bytes.data
            while column.offsets[index + 1] <= at:
                index += 1
            found.append(index)
            at = column.offsets[index + 1]
        return found

    def __len__(self):
        return self.column.count

    def __getitem__(self, Py_ssize_t index):
        cdef pm_column *column = &self.column
        if not 0 <= index < column.count:
            raise IndexError(index)
        return PyBytes_FromStringAndSize(
            <char *>column.bytes.data + column.offsets[index], column.offsets[index + 1] - column.offsets[index]
        )


def row_ends(bytes text not None, bytes separator not None, bint quotes):
    """Return the offset after the line feed of each row of CSV or TSV, as an ``array('q')``.

    The last row may be incomplete: it has no end.

    :param separator: a single byte
    :param quotes: a field that starts with a quote extends to the closing quote, with line feeds inside
    """
    cdef const uint8_t *data = text
    cdef int64_t size = len(text)
    cdef uint8_t byte = separator[0]
    cdef int64_t count
    with nogil:
        count = pm_count_byte(data, size, c"\n")
    cdef bytes found = PyBytes_FromStringAndSize(NULL, count * sizeof(int64_t))
    cdef int64_t *ends = <int64_t *>PyBytes_AS_STRING(<PyObject *>found)
    with nogil:
        count = pm_find_rows(data, size, byte, quotes, ends)
    offsets = array("q")
    offsets.frombytes(memoryview(found)[: count * sizeof(int64_t)])
    return offsets


cdef Py_ssize_t _append_utf8(pm_bytes *out, PyObject *text) except -2:
    """Append a ``str`` as UTF-8 and return -1, or the index of an unpaired surrogate that does not encode a byte.

    PyUnicode_AsUTF8AndSize would store a second copy inside the string for as long as it exists.
    """
    cdef int kind = PyUnicode_KIND(text)
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t position, length = PyUnicode_GET_LENGTH(text)
    cdef uint32_t character
    cdef uint8_t *end
    if pm_reserve(out, 4 * length) < 0:
        raise MemoryError
    end = out.data + out.size
    for position in range(length):
        character = PyUnicode_READ(kind, data, position)
        if not 0xD800 <= character <= 0xDFFF:
            end = pm_put_utf8(end, character)
        elif 0xDC80 <= character <= 0xDCFF:
            end[0] = <uint8_t>(character - 0xDC00)
            end += 1
        else:
            return position
    out.size = end - out.data
    return -1


# --- kernels ------------------------------------------------------------------------------------------------


cdef class Kernel:
    """A mapping with its parameters: accepts a column, returns a column and the errors.

    A subclass sets the C function, its parameters and the limit. An item without a result is empty in the returned
    column.
    """

    cdef int run(self, const pm_column *source, pm_column *out, pm_errors *errors) noexcept nogil:
        return pm_map_column(self.function, self.parameters, self.limit, source, out, errors)

    def __call__(self, ByteColumn packed not None):
        cdef ByteColumn result = ByteColumn.__new__(ByteColumn)
        cdef pm_errors errors
        cdef int status
        cdef int64_t number
        errors.list = NULL
        errors.count = errors.capacity = 0
        with nogil:
            status = self.run(&packed.column, &result.column, &errors)
        try:
            if status < 0:
                raise MemoryError
            return result, [
                (errors.list[number].index, errors.list[number].code, errors.list[number].position)
                for number in range(errors.count)
            ]
        finally:
            free(errors.list)


cdef class Inverse(Kernel):
    """A strict inverse: decodes each path, maps the identifier again, and accepts it only if the path is the same."""

    def __init__(self, Kernel decode not None, Kernel map_again not None):
        self.decode = decode
        self.map_again = map_again
        self.limit = decode.limit

    cdef int run(self, const pm_column *source, pm_column *out, pm_errors *errors) noexcept nogil:
        cdef pm_column identifiers, again
        cdef pm_errors decoding, mapping
        cdef int status
        identifiers.bytes.data = again.bytes.data = NULL
        identifiers.offsets = again.offsets = NULL
        decoding.list = mapping.list = NULL
        decoding.count = decoding.capacity = mapping.count = mapping.capacity = 0
        status = self.decode.run(source, &identifiers, &decoding)
        if status >= 0:
            status = self.map_again.run(&identifiers, &again, &mapping)
        if status >= 0:
            status = pm_check_inverse(source, &identifiers, &again, &decoding, out, errors)
        pm_free_column(&identifiers)
        pm_free_column(&again)
        free(decoding.list)
        free(mapping.list)
        return status


include "layouts.pxi"
