// Works on OCFL storage roots with ocfl-go: one request a line of standard input, one answer a line of standard output,
// all in JSON. See ../../ocfl_stores.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/srerickson/ocfl-go"
	"github.com/srerickson/ocfl-go/digest"
	"github.com/srerickson/ocfl-go/extension"
	"github.com/srerickson/ocfl-go/fs/local"
)

type request struct {
	Do        string
	Root      string
	Version   string
	Layout    json.RawMessage
	ID        string
	Source    string
	Algorithm string
	Fixity    []string
	Message   string
	User      map[string]string
	Paths     []string
	IDs       []string
}

type found struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

func openRoot(ctx context.Context, folder string, options ...ocfl.RootOption) (*ocfl.Root, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	files, err := local.NewFS(folder)
	if err != nil {
		return nil, err
	}
	return ocfl.NewRoot(ctx, files, ".", options...)
}

func create(ctx context.Context, asked request) error {
	layout, err := extension.DefaultRegistry().Unmarshal(asked.Layout)
	if err != nil {
		return err
	}
	_, err = openRoot(ctx, asked.Root, ocfl.InitRoot(ocfl.Spec(asked.Version), "made by ocfl-go", layout))
	return err
}

// The source directory is the state of the new version.
func put(ctx context.Context, asked request) error {
	root, err := openRoot(ctx, asked.Root)
	if err != nil {
		return err
	}
	object, err := root.NewObject(ctx, asked.ID)
	if err != nil {
		return err
	}
	registry := digest.DefaultRegistry()
	algorithm, err := registry.Get(asked.Algorithm)
	if err != nil {
		return err
	}
	files, err := local.NewFS(asked.Source)
	if err != nil {
		return err
	}
	stage, err := ocfl.StageDir(ctx, files, ".", algorithm, registry.GetAny(asked.Fixity...)...)
	if err != nil {
		return err
	}
	user := ocfl.User{Name: asked.User["name"], Address: asked.User["address"]}
	// Without the option, it makes objects of OCFL 1.1 in a root of OCFL 1.0.
	_, err = object.Update(ctx, stage, asked.Message, user, ocfl.UpdateWithOCFLSpec(root.Spec()))
	return err
}

func texts(problems []error) []string {
	all := []string{}
	for _, problem := range problems {
		text := problem.Error()
		var coded *ocfl.ValidationError
		if errors.As(problem, &coded) && coded.Code != "" {
			text = coded.Code + ": " + text
		}
		all = append(all, text)
	}
	return all
}

// Objects are validated by their paths, which needs no layout, and by their identifiers, which does.
func validate(ctx context.Context, asked request) (map[string]found, error) {
	files, err := local.NewFS(asked.Root)
	if err != nil {
		return nil, err
	}
	answer := map[string]found{}
	for _, path := range asked.Paths {
		one := ocfl.ValidateObject(ctx, files, path)
		answer[path] = found{texts(one.Errors()), texts(one.WarnErrors())}
	}
	if len(asked.IDs) > 0 {
		root, err := openRoot(ctx, asked.Root)
		if err != nil {
			return nil, err
		}
		for _, id := range asked.IDs {
			one := root.ValidateObject(ctx, id)
			answer[id] = found{texts(one.Errors()), texts(one.WarnErrors())}
		}
	}
	return answer, nil
}

func main() {
	ctx := context.Background()
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		var answer any = map[string]any{}
		if err = json.Unmarshal(line, &asked); err == nil {
			switch asked.Do {
			case "create":
				err = create(ctx, asked)
			case "put":
				err = put(ctx, asked)
			case "validate":
				answer, err = validate(ctx, asked)
			default:
				err = errors.New("ocfl-go cannot " + asked.Do)
			}
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		} else {
			answer = map[string]any{"answer": answer}
		}
		if answers.Encode(answer) != nil {
			return
		}
	}
}
