// Times OCFL 0011 as a reader of the document would write it in Go: runner CONFIG IDENTIFIERS PATHS ROUNDS.
//
// Ours, from the steps of the document's procedure, with its defaults; a yardstick for a layout whose one implementation,
// gocfl, is not always to be had. Files hold NUL-delimited UTF-8; an identifier that cleans to nothing gets an empty
// path. Prints one JSON object with the seconds of each round, of the mapping loop alone.
package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	longestSegment = 127
	longestPath    = 32000
	space          = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
		"\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202f\u205f\u3000"
)

var (
	spaces        = regexp.MustCompile(`[\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200f}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`)
	dangerous     = regexp.MustCompile(`[\x00-\x1f\x7f*?:\[\]"<>|(){}&'!;#@]`)
	toEncode      = regexp.MustCompile(spaces.String()[:len(spaces.String())-1] + dangerous.String()[1:])
	looksEncoded  = regexp.MustCompile(`=(u[0-9A-Fa-f]{4})`)
	onlyFullStops = regexp.MustCompile(`^\.+$`)
)

func encoded(character string) string {
	return fmt.Sprintf("=u%04X", []rune(character)[0])
}

func fallback(id string) string {
	digest := md5.Sum([]byte(id))
	return "fallback/" + hex.EncodeToString(digest[:])
}

func clean(id string, encode bool) string {
	var segments []string
	for _, segment := range strings.Split(strings.ToValidUTF8(id, "_"), "/") {
		if encode {
			segment = looksEncoded.ReplaceAllString(segment, "=u003D$1")
			segment = toEncode.ReplaceAllStringFunc(segment, encoded)
			if strings.HasPrefix(segment, "~") || onlyFullStops.MatchString(segment) {
				segment = encoded(segment[:1]) + segment[1:]
			}
		} else {
			segment = spaces.ReplaceAllString(segment, " ")
			segment = dangerous.ReplaceAllString(segment, "_")
			segment = strings.TrimRight(strings.TrimLeft(segment, "-~"+space), space)
			if onlyFullStops.MatchString(segment) {
				segment = "_" + segment[1:]
			}
		}
		if len(segment) > longestSegment {
			return fallback(id)
		}
		if segment != "" {
			segments = append(segments, segment)
		}
	}
	path := strings.Join(segments, "/")
	if len(path) > longestPath {
		return fallback(id)
	}
	return path
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	var config struct {
		EncodeUTF bool `json:"encodeUTF"`
	}
	if err := json.Unmarshal(must(os.ReadFile(os.Args[1])), &config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ids := strings.Split(string(must(os.ReadFile(os.Args[2]))), "\x00")
	ids = ids[:len(ids)-1]

	var seconds []float64
	var paths []string
	for range must(strconv.Atoi(os.Args[4])) {
		paths = make([]string, 0, len(ids))
		start := time.Now()
		for _, id := range ids {
			paths = append(paths, clean(id, config.EncodeUTF))
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
