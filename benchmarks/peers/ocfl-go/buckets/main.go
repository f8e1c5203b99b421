// Works on an OCFL storage root in a bucket with ocfl-go: buckets DO BUCKET ROOT WORKERS [LIST].
//
//	init    create the root, with the layout 0003
//	put     store the objects of LIST: lines of an identifier, a tab, and the path of the only file
//	ls      print the identifiers
//	check   validate all objects with their content
//
// put and check print the number of objects. Server and credentials are those of the AWS_* variables.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	s3sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/srerickson/ocfl-go"
	"github.com/srerickson/ocfl-go/digest"
	"github.com/srerickson/ocfl-go/extension"
	"github.com/srerickson/ocfl-go/fs/s3"
	"golang.org/x/sync/errgroup"
)

const layout = `{"extensionName": "0003-hash-and-id-n-tuple-storage-layout"}`

var user = ocfl.User{Name: "Benchmark", Address: "https://example.org/benchmark"}

func openBucket(ctx context.Context, name string, workers int) (*s3.BucketFS, error) {
	// One connection for each worker; by default, only ten are kept.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
		transport.MaxIdleConnsPerHost = workers
	})
	settings, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
	if err != nil {
		return nil, err
	}
	return s3.NewBucketFS(s3sdk.NewFromConfig(settings, func(options *s3sdk.Options) { options.UsePathStyle = true }), name), nil
}

func create(ctx context.Context, bucket *s3.BucketFS, path string) error {
	found, err := extension.DefaultRegistry().Unmarshal([]byte(layout))
	if err != nil {
		return err
	}
	_, err = ocfl.NewRoot(ctx, bucket, path, ocfl.InitRoot(ocfl.Spec1_1, "made by ocfl-go", found))
	return err
}

func put(ctx context.Context, root *ocfl.Root, id, path string) error {
	object, err := root.NewObject(ctx, id)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	stage, err := ocfl.StageBytes(map[string][]byte{filepath.Base(path): data}, digest.SHA512)
	if err != nil {
		return err
	}
	_, err = object.Update(ctx, stage, "put", user)
	return err
}

func putAll(ctx context.Context, root *ocfl.Root, workers int, list string) (int, error) {
	file, err := os.Open(list)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	count := 0
	lines := bufio.NewScanner(file)
	for ; lines.Scan(); count++ {
		id, path, _ := strings.Cut(lines.Text(), "\t")
		group.Go(func() error { return put(ctx, root, id, path) })
	}
	return count, errors.Join(lines.Err(), group.Wait())
}

func list(ctx context.Context, root *ocfl.Root, workers int) error {
	lines := bufio.NewWriter(os.Stdout)
	for object, err := range root.ObjectsBatch(ctx, workers) {
		if err != nil {
			return err
		}
		fmt.Fprintln(lines, object.ID())
	}
	return lines.Flush()
}

func check(ctx context.Context, root *ocfl.Root, workers int) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	count := 0
	var failed error
	for declaration, err := range root.ObjectDeclarations(ctx) {
		if err != nil {
			failed = err
			break
		}
		count++
		path := strings.TrimPrefix(declaration.FullPathDir(), root.Path()+"/")
		group.Go(func() error {
			return root.ValidateObjectDir(ctx, path, ocfl.ValidationDigestConcurrency(1)).Err()
		})
	}
	return count, errors.Join(failed, group.Wait())
}

func run(ctx context.Context, do, name, path string, arguments ...string) error {
	workers, err := strconv.Atoi(arguments[0])
	if err != nil {
		return err
	}
	bucket, err := openBucket(ctx, name, workers)
	if err != nil {
		return err
	}
	if do == "init" {
		return create(ctx, bucket, path)
	}
	root, err := ocfl.NewRoot(ctx, bucket, path)
	if err != nil {
		return err
	}
	var count int
	switch do {
	case "put":
		count, err = putAll(ctx, root, workers, arguments[1])
	case "ls":
		return list(ctx, root, workers)
	case "check":
		count, err = check(ctx, root, workers)
	default:
		err = errors.New("ocfl-go cannot " + do)
	}
	if err == nil {
		fmt.Println(count)
	}
	return err
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
