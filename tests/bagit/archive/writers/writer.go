// Packs the directory bag below a directory with Go's archive/tar and archive/zip.
package main

import (
	"archive/tar"
	"archive/zip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	mode, source, out := os.Args[1], os.Args[2], os.Args[3]
	file, err := os.Create(out)
	check(err)
	var tarred *tar.Writer
	var zipped *zip.Writer
	if mode == "zip" || mode == "zip-stored" || mode == "zip-fs" {
		zipped = zip.NewWriter(file)
	} else {
		tarred = tar.NewWriter(file)
	}
	if mode == "zip-fs" {
		check(zipped.AddFS(os.DirFS(source)))
	} else {
		check(filepath.WalkDir(filepath.Join(source, "bag"), func(path string, entry fs.DirEntry, err error) error {
			check(err)
			name, err := filepath.Rel(source, path)
			check(err)
			info, err := entry.Info()
			check(err)
			if entry.IsDir() {
				name += "/"
			}
			var to io.Writer
			if tarred != nil {
				header, err := tar.FileInfoHeader(info, "")
				check(err)
				header.Name = name
				// In the format of GNU, Python takes these times for a prefix of the name.
				header.AccessTime, header.ChangeTime = time.Time{}, time.Time{}
				header.Format = map[string]tar.Format{"tar-pax": tar.FormatPAX, "tar-gnu": tar.FormatGNU}[mode]
				check(tarred.WriteHeader(header))
				to = tarred
			} else {
				header, err := zip.FileInfoHeader(info)
				check(err)
				header.Name = name
				if mode == "zip" {
					header.Method = zip.Deflate
				}
				to, err = zipped.CreateHeader(header)
				check(err)
			}
			if !entry.IsDir() {
				content, err := os.Open(path)
				check(err)
				_, err = io.Copy(to, content)
				check(err)
				check(content.Close())
			}
			return nil
		}))
	}
	if tarred != nil {
		check(tarred.Close())
	} else {
		check(zipped.Close())
	}
	check(file.Close())
}
