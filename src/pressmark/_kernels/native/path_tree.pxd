# cython: language_level=3
"""What the merge of paths needs of their tree."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pressmark._kernels.native.packed cimport pm_bytes


cdef extern from "path_tree.h":
    enum:
        PM_TREE_SAMPLES
        PM_TREE_ENTRIES

    ctypedef struct pm_large:
        int64_t entries
        pm_bytes path

    ctypedef struct pm_holding:
        int64_t *table
        int64_t *crowds
        int64_t crowd_count

    ctypedef struct pm_tree:
        int64_t *levels
        int64_t level_count
        int64_t leaves
        pm_holding fans
        pm_holding firsts
        pm_large *largest
        int64_t largest_count
        int64_t *sampled
        int64_t *sampled_directories
        int64_t *sampled_leaves


cdef class PathTree:
    cdef pm_tree tree
    # Held while a merge adds to the tree, which it does without the GIL.
    cdef cython.pymutex lock
