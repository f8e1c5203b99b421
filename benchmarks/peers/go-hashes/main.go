// Hashes files with md5-simd or sha256-simd: runner ALGORITHM LIST.
//
// ALGORITHM is md5, sha256, or sha256-avx512, which hashes 16 files at a time. LIST has one path per line. Prints the
// digests in the format of sha256sum, in the order of the list. Uses one core, unless GOMAXPROCS is set.
package main

import (
	"bufio"
	"fmt"
	"hash"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	md5simd "github.com/minio/md5-simd"
	sha256 "github.com/minio/sha256-simd"
)

// The lanes of a server can still use the last two blocks after Write has returned; with smaller blocks they are seldom full.
const blocks, blockSize = 3, 256 << 10

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// hashers returns the hashers of an algorithm, one for each file that is hashed at the same time.
func hashers(algorithm string) []hash.Hash {
	found := []hash.Hash{}
	switch algorithm {
	case "md5":
		server := md5simd.NewServer()
		for range md5simd.Lanes {
			found = append(found, server.NewHash())
		}
	case "sha256":
		found = append(found, sha256.New())
	case "sha256-avx512":
		found = avx512()
	default:
		must(0, fmt.Errorf("%s: unknown algorithm", algorithm))
	}
	return found
}

func digest(hasher hash.Hash, path string, buffers *[blocks][blockSize]byte) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hasher.Reset()
	for turn := 0; ; turn++ {
		buffer := buffers[turn%blocks][:]
		count, err := file.Read(buffer)
		if err == io.EOF {
			return hasher.Sum(nil), nil
		}
		if err != nil {
			return nil, err
		}
		hasher.Write(buffer[:count])
	}
}

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	paths := strings.Split(strings.TrimSpace(string(must(os.ReadFile(os.Args[2])))), "\n")
	digests := make([][]byte, len(paths))
	var next atomic.Int64
	var group sync.WaitGroup
	for _, hasher := range hashers(os.Args[1]) {
		group.Add(1)
		go func() {
			defer group.Done()
			buffers := new([blocks][blockSize]byte)
			for i := next.Add(1) - 1; i < int64(len(paths)); i = next.Add(1) - 1 {
				digests[i] = must(digest(hasher, paths[i], buffers))
			}
			if lane, ok := hasher.(md5simd.Hasher); ok {
				lane.Close()
			}
		}()
	}
	group.Wait()

	output := bufio.NewWriter(os.Stdout)
	for i, path := range paths {
		fmt.Fprintf(output, "%x  %s\n", digests[i], path)
	}
	must(0, output.Flush())
}
