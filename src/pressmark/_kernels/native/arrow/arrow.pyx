"""Columns of strings through the Arrow C data interface, in and out.

Nothing here words an error: an invalid foreign structure is reported as a *problem*, a tuple of a name and values,
which ``pressmark.arrow`` turns into a message.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from pressmark._kernels.native._mapping cimport (
    Kernel,
    ByteColumn,
    pm_column,
    pm_copy_items,
    pm_error,
    pm_errors,
    pm_free_column,
    pm_is_ascii,
)

__all__ = [
    "Array",
    "Chunk",
    "Concatenation",
    "Source",
    "Stream",
    "describe_schema",
    "export_array",
    "export_schema",
    "export_stream",
    "map_part",
    "outstanding_exports",
]


cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t, Py_UCS4)
    void *PyUnicode_DATA(object)
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)


cdef extern from "arrow/export.h":
    struct ArrowSchema:
        const char *format
        const char *name
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil

    struct ArrowArray:
        void (*release)(ArrowArray *) noexcept nogil

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept nogil
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *) noexcept nogil
        void (*release)(ArrowArrayStream *) noexcept nogil

    ctypedef struct pm_borrowed:
        int64_t references
        ArrowArray array

    ctypedef struct pm_chunk:
        pm_column column
        uint8_t *validity
        int64_t null_count

    enum:
        PM_MOST_FIELDS

    ctypedef struct pm_shape:
        int is_struct
        int count
        char *formats
        const char **names

    int64_t pm_exports
    int64_t pm_add_atomically(int64_t *, int64_t) noexcept nogil
    int pm_bit(const uint8_t *, int64_t) noexcept nogil
    void pm_drop_borrowed(pm_borrowed *) noexcept nogil
    void pm_drop_chunk(pm_chunk *) noexcept nogil
    pm_chunk *pm_result_chunk(pm_column *, const pm_chunk *, const pm_errors *, int, pm_error *) noexcept nogil
    int pm_chunk_is_utf8(const pm_chunk *) noexcept nogil
    pm_chunk *pm_new_concatenation(pm_chunk **, int64_t) noexcept nogil
    void pm_copy_chunk(pm_chunk *, const pm_chunk *, int64_t, int64_t) noexcept nogil
    int pm_export_schema(const pm_shape *, ArrowSchema *) noexcept nogil
    int pm_export_array(const pm_shape *, pm_chunk **, ArrowArray *) noexcept nogil
    int pm_export_stream(const pm_shape *, pm_chunk **, int64_t, ArrowArrayStream *) noexcept nogil


cdef extern from "arrow/source.h":
    ctypedef struct pm_problem:
        int code
        int part
        int64_t first
        int64_t second

    ctypedef struct pm_source:
        pm_borrowed *borrowed
        int64_t count

    ctypedef struct pm_selection:
        int64_t children
        int64_t child
        int entry
        int index

    int pm_open_source(pm_source *, const pm_selection *, pm_problem *) noexcept nogil
    pm_chunk *pm_gather(const pm_source *, int64_t, int64_t) noexcept nogil


cdef extern from *:
    """
    /* A foreign release may call into Python, which must not happen while an exception is set: destructors save and
     * restore it. */
    #if PY_VERSION_HEX >= 0x030C0000
    typedef PyObject *pm_pending;
    #define PM_SAVE_EXCEPTION(pending) ((pending) = PyErr_GetRaisedException())
    #define PM_RESTORE_EXCEPTION(pending) PyErr_SetRaisedException(pending)
    #else
    typedef struct { PyObject *type, *value, *traceback; } pm_pending;
    #define PM_SAVE_EXCEPTION(pending) PyErr_Fetch(&(pending).type, &(pending).value, &(pending).traceback)
    #define PM_RESTORE_EXCEPTION(pending) PyErr_Restore((pending).type, (pending).value, (pending).traceback)
    #endif
    """
    ctypedef struct pm_pending:
        pass
    void PM_SAVE_EXCEPTION(pm_pending)
    void PM_RESTORE_EXCEPTION(pm_pending)


# In the order of the enumeration in source.h: a name and the number of its values.
cdef tuple _PROBLEMS = (
    None,
    ("released", 0),
    ("length", 2),
    ("null_count", 2),
    ("buffers", 2),
    ("no_buffers", 0),
    ("no_validity", 1),
    ("children", 2),
    ("child", 1),
    ("short_child", 2),
    ("dictionary", 0),
    ("no_buffer", 1),
    ("offsets", 1),
    ("view", 1),
    ("index", 2),
)
cdef tuple _PARTS = ("column", "struct", "dictionary")


cdef tuple _problem(const pm_problem *problem):
    name, numbers = _PROBLEMS[problem.code]
    return name, _PARTS[problem.part], *(problem.first, problem.second)[:numbers]


def outstanding_exports():
    """Return how many exported structures, including fields of structs, are not released yet."""
    return pm_add_atomically(&pm_exports, 0)


# --- in -----------------------------------------------------------------------------------------------------


cdef str _text(const char *text):
    return (<bytes>text).decode("utf-8", "backslashreplace") if text != NULL else ""


cdef tuple _describe(const ArrowSchema *schema):
    cdef int64_t number
    cdef const ArrowSchema *child
    if schema.release == NULL:
        return None, ("schema_released",)
    if schema.format == NULL or schema.n_children < 0 or (schema.n_children > 0 and schema.children == NULL):
        return None, ("schema_broken",)
    children = []
    for number in range(schema.n_children):
        child = schema.children[number]
        if child == NULL or child.release == NULL or child.format == NULL:
            return None, ("schema_broken",)
        if child.dictionary != NULL and child.dictionary.format == NULL:
            return None, ("schema_broken",)
        dictionary = _text(child.dictionary.format) if child.dictionary != NULL else None
        children.append((_text(child.name), _text(child.format), dictionary))
    if schema.dictionary != NULL and schema.dictionary.format == NULL:
        return None, ("schema_broken",)
    dictionary = _text(schema.dictionary.format) if schema.dictionary != NULL else None
    return (_text(schema.format), tuple(children), dictionary), None


def describe_schema(capsule):
    """Return ``((format, ((name, format, dictionary's format), …), dictionary's format), problem)``."""
    if not PyCapsule_IsValid(capsule, "arrow_schema"):
        return None, ("capsule", "arrow_schema")
    return _describe(<ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema"))


cdef class Source:
    """The items of a checked foreign array. Several threads can read parts of it at the same time."""

    cdef pm_source source

    def __dealloc__(self):
        cdef pm_pending pending
        PM_SAVE_EXCEPTION(pending)
        # A foreign release may wait for a thread that waits for the GIL.
        with nogil:
            pm_drop_borrowed(self.source.borrowed)
        PM_RESTORE_EXCEPTION(pending)

    def __len__(self):
        return self.source.count


cdef tuple _open(Source source, selection):
    cdef pm_selection selected
    cdef pm_problem problem
    selected.children, selected.child, selected.entry, selected.index = selection
    problem.code = 0
    with nogil:
        pm_open_source(&source.source, &selected, &problem)
    if problem.code != 0:
        return None, _problem(&problem)
    return source, None


cdef Source _new_source():
    cdef Source source = Source.__new__(Source)
    source.source.borrowed = <pm_borrowed *>calloc(1, sizeof(pm_borrowed))
    if source.source.borrowed == NULL:
        raise MemoryError
    source.source.borrowed.references = 1
    return source


cdef class Array:
    """A foreign array with its schema, in their capsules."""

    cdef object schema
    cdef object array

    def __init__(self, schema, array):
        self.schema = schema
        self.array = array

    def describe(self):
        """Return the same as :func:`describe_schema`."""
        return describe_schema(self.schema)

    def take(self, selection):
        """Move the array out of its capsule and return ``(Source, None)``, or ``(None, problem)``.

        :param selection: from the schema: the number of children of the struct, or -1; the number of the child; the
            size of an entry in bytes (4 and 8 for offsets, 16 for views, 0 for the null type); the size of a dictionary
            index (negative if signed, 0 without a dictionary)
        """
        cdef Source source = _new_source()
        cdef ArrowArray *array
        if not PyCapsule_IsValid(self.array, "arrow_array"):
            return None, ("capsule", "arrow_array")
        array = <ArrowArray *>PyCapsule_GetPointer(self.array, "arrow_array")
        source.source.borrowed.array = array[0]
        # After the move, the capsule's destructor must not release the array.
        array.release = NULL
        return _open(source, selection)


cdef class Stream:
    """A foreign stream of arrays, moved out of its capsule."""

    cdef ArrowArrayStream stream
    # A stream must not be used by several threads at the same time, nor after it was closed.
    cdef cython.pymutex lock

    def __dealloc__(self):
        cdef pm_pending pending
        PM_SAVE_EXCEPTION(pending)
        self.close()
        PM_RESTORE_EXCEPTION(pending)

    @staticmethod
    def take(exporter):
        """Return ``(Stream, None)``, or ``(None, problem)``; ``exporter`` has ``__arrow_c_stream__``."""
        capsule = exporter.__arrow_c_stream__()
        cdef Stream taken = Stream.__new__(Stream)
        cdef ArrowArrayStream *stream
        if not PyCapsule_IsValid(capsule, "arrow_array_stream"):
            return None, ("capsule", "arrow_array_stream")
        stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
        if stream.release == NULL:
            return None, ("stream_released",)
        taken.stream = stream[0]
        stream.release = NULL
        return taken, None

    cdef tuple _failure(self):
        cdef const char *message
        with nogil:
            message = self.stream.get_last_error(&self.stream) if self.stream.get_last_error != NULL else NULL
        return "stream", _text(message)

    def describe(self):
        """Return the same as :func:`describe_schema`."""
        cdef ArrowSchema schema
        cdef int status
        memset(&schema, 0, sizeof(schema))
        with self.lock:
            if self.stream.release == NULL:
                return None, ("stream_released",)
            with nogil:
                status = self.stream.get_schema(&self.stream, &schema)
            if status != 0:
                return None, self._failure()
        try:
            return _describe(&schema)
        finally:
            if schema.release != NULL:
                with nogil:
                    schema.release(&schema)

    def next(self, selection):
        """Return ``(Source, None)``, ``(None, None)`` at the end, or ``(None, problem)``."""
        cdef Source source = _new_source()
        cdef ArrowArray *array = &source.source.borrowed.array
        cdef int status
        with self.lock:
            if self.stream.release == NULL:
                return None, ("stream_released",)
            # The producer may run a query in threads that need the GIL.
            with nogil:
                status = self.stream.get_next(&self.stream, array)
            if status != 0:
                # The array is undefined after an error.
                array.release = NULL
                return None, self._failure()
        if array.release == NULL:
            return None, None
        return _open(source, selection)

    cpdef void close(self) noexcept:
        """Release the stream, once."""
        with self.lock:
            if self.stream.release != NULL:
                with nogil:
                    self.stream.release(&self.stream)
                self.stream.release = NULL


# --- columns ------------------------------------------------------------------------------------------------


include "chunk.pxi"


cdef int _run_python(object kernel, const pm_column *items, pm_column *made, pm_errors *errors) except -1:
    """Run a kernel in Python, that of a layout of one's own."""
    cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
    cdef ByteColumn results
    cdef int64_t number = 0
    if pm_copy_items(items, 0, items.count, &packed.column) < 0:
        raise MemoryError
    results, faults = kernel(packed)
    if pm_copy_items(&results.column, 0, items.count, made) < 0:
        raise MemoryError
    errors.list = <pm_error *>calloc(len(faults) + 1, sizeof(pm_error))
    if errors.list == NULL:
        raise MemoryError
    for index, code, position in faults:
        errors.list[number].index = index
        errors.list[number].code = code
        errors.list[number].position = position
        number += 1
    errors.count = errors.capacity = number
    return 0


def map_part(kernel not None, Source source not None, int64_t start, int64_t stop, bint nullify, bint keep):
    """Map the items from ``start`` to ``stop`` of ``source``.

    :param nullify: make items with an error null
    :param keep: return the items too
    :return: the results; the items or None; and None, or the first error of an item that is not null, as
        ``(index in the part, code, position, item)``
    """
    cdef Kernel native = kernel if isinstance(kernel, Kernel) else None
    cdef pm_chunk *items
    cdef pm_chunk *results = NULL
    cdef pm_column made
    cdef pm_errors errors
    cdef pm_error found
    cdef int status = -1
    memset(&made, 0, sizeof(made))
    memset(&errors, 0, sizeof(errors))
    memset(&found, 0, sizeof(found))
    with nogil:
        items = pm_gather(&source.source, start, stop)
        if items != NULL and native is not None:
            status = native.run(&items.column, &made, &errors)
    if items != NULL and native is None:
        try:
            status = _run_python(kernel, &items.column, &made, &errors)
        except BaseException:
            pm_drop_chunk(items)
            pm_free_column(&made)
            raise
    with nogil:
        if status >= 0:
            results = pm_result_chunk(&made, items, &errors, nullify, &found)
        if results == NULL:
            pm_free_column(&made)
        free(errors.list)
        if results == NULL or not keep and found.code == 0:
            pm_drop_chunk(items)
            items = NULL
    if results == NULL:
        raise MemoryError
    result = _wrap(results)
    kept = _wrap(items) if items != NULL else None
    if found.code == 0:
        return result, kept, None
    return result, kept, (found.index, found.code, found.position, kept.item(found.index))


cdef class Concatenation:
    """The concatenation of chunks. :meth:`copy` may be called for several chunks at the same time, in any order."""

    cdef list chunks
    cdef list firsts
    cdef list places
    cdef Chunk whole

    def __init__(self, chunks):
        cdef Chunk chunk
        cdef int64_t count = 0, size = 0, chunk_count
        cdef pm_chunk *whole
        cdef pm_chunk **pointers
        self.chunks = list(chunks)
        self.firsts = []
        self.places = []
        for chunk in self.chunks:
            self.firsts.append(count)
            self.places.append(size)
            count += chunk.chunk.column.count
            size += chunk.chunk.column.bytes.size
        pointers = _pointers(self.chunks)
        chunk_count = len(self.chunks)
        with nogil:
            whole = pm_new_concatenation(pointers, chunk_count)
        free(pointers)
        if whole == NULL:
            raise MemoryError
        self.whole = _wrap(whole)

    def copy(self, Py_ssize_t number):
        """Copy the items of chunk ``number``."""
        cdef Chunk chunk = self.chunks[number]
        cdef int64_t first = self.firsts[number], place = self.places[number]
        cdef pm_chunk *whole = self.whole.chunk
        with nogil:
            pm_copy_chunk(whole, chunk.chunk, first, place)

    def result(self):
        """Return the concatenation, after all chunks were copied."""
        return self.whole


# --- out ----------------------------------------------------------------------------------------------------


cdef pm_chunk **_pointers(list chunks) except NULL:
    """Return an array that the caller must free; the list must exist unchanged until then."""
    cdef Py_ssize_t number
    # One more than needed: malloc(0) may return NULL.
    cdef pm_chunk **pointers = <pm_chunk **>malloc((len(chunks) + 1) * sizeof(void *))
    if pointers == NULL:
        raise MemoryError
    for number in range(len(chunks)):
        pointers[number] = (<Chunk?>chunks[number]).chunk
    return pointers


cdef int _fill_shape(pm_shape *shape, str formats, names) except -1:
    cdef int number
    if not 1 <= len(formats) <= PM_MOST_FIELDS:
        raise ValueError(formats)
    shape.is_struct = names is not None
    shape.count = <int>len(formats)
    for number in range(shape.count):
        shape.formats[number] = <char>ord(formats[number])
        # Literals, because a schema may outlive all Python objects.
        if names is None:
            shape.names[number] = ""
        elif names[number] == "identifier":
            shape.names[number] = "identifier"
        elif names[number] == "path":
            shape.names[number] = "path"
        else:
            raise ValueError(names[number])
    return 0


cdef void _drop_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void _drop_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void _drop_stream(object capsule) noexcept:
    cdef ArrowArrayStream *stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


# All three functions create the capsule first: from then on its destructor frees the structure after an error. Zeroed
# memory is a structure without a release.


def export_schema(str formats not None, names):
    """Return a new ``arrow_schema`` capsule.

    :param formats: the format of each field; if ``names`` is None, the format of the column itself
    :param names: the names of the fields of a struct
    """
    cdef pm_shape shape
    cdef ArrowSchema *schema
    _fill_shape(&shape, formats, names)
    schema = <ArrowSchema *>calloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(schema, "arrow_schema", _drop_schema)
    except BaseException:
        free(schema)
        raise
    if pm_export_schema(&shape, schema) < 0:
        raise MemoryError
    return capsule


def export_array(str formats not None, names, chunks):
    """Return a new ``arrow_array`` capsule that shares ``chunks``, one for each field."""
    cdef pm_shape shape
    cdef ArrowArray *array
    cdef pm_chunk **pointers
    cdef int status
    cdef list held = list(chunks)
    _fill_shape(&shape, formats, names)
    if len(held) != shape.count:
        raise ValueError(formats)
    array = <ArrowArray *>calloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(array, "arrow_array", _drop_array)
    except BaseException:
        free(array)
        raise
    pointers = _pointers(held)
    with nogil:
        status = pm_export_array(&shape, pointers, array)
    free(pointers)
    if status < 0:
        raise MemoryError
    return capsule


def export_stream(str formats not None, names, batches):
    """Return a new ``arrow_array_stream`` capsule that shares ``batches``, each with one chunk for each field."""
    cdef pm_shape shape
    cdef ArrowArrayStream *stream
    cdef pm_chunk **pointers
    cdef int status
    cdef list held = [chunk for batch in batches for chunk in batch]
    cdef int64_t count
    _fill_shape(&shape, formats, names)
    count = len(held) // shape.count
    if count * shape.count != len(held):
        raise ValueError(formats)
    stream = <ArrowArrayStream *>calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(stream, "arrow_array_stream", _drop_stream)
    except BaseException:
        free(stream)
        raise
    pointers = _pointers(held)
    with nogil:
        status = pm_export_stream(&shape, pointers, count, stream)
    free(pointers)
    if status < 0:
        raise MemoryError
    return capsule
