//go:build !amd64

package main

import (
	"errors"
	"hash"
)

func avx512() []hash.Hash {
	return must([]hash.Hash(nil), errors.New("this processor has no AVX-512"))
}
