// Times a layout of ocfl-go on a file of identifiers: runner CONFIG IDENTIFIERS PATHS ROUNDS.
//
// Files hold NUL-delimited UTF-8; an identifier that ocfl-go refuses gets an empty path. Prints one JSON object with
// the seconds of each round, of the mapping loop alone.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/srerickson/ocfl-go/extension"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	config := must(os.ReadFile(os.Args[1]))
	content := string(must(os.ReadFile(os.Args[2])))
	rounds := must(strconv.Atoi(os.Args[4]))

	layout, ok := must(extension.DefaultRegistry().Unmarshal(config)).(extension.Layout)
	if !ok {
		fmt.Fprintln(os.Stderr, "not a layout")
		os.Exit(1)
	}

	ids := strings.Split(content, "\x00")
	ids = ids[:len(ids)-1]
	var seconds []float64
	var paths []string
	for range rounds {
		paths = make([]string, 0, len(ids))
		start := time.Now()
		for _, id := range ids {
			path, err := layout.Resolve(id)
			if err != nil {
				path = ""
			}
			paths = append(paths, path)
		}
		seconds = append(seconds, time.Since(start).Seconds())
	}

	var output strings.Builder
	for _, path := range paths {
		output.WriteString(path)
		output.WriteByte(0)
	}
	if err := os.WriteFile(os.Args[3], []byte(output.String()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(must(json.Marshal(map[string]any{"seconds": seconds, "runtime": runtime.Version()}))))
}
