package surface

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
)

// Load returns the types of the packages with these paths that there are, as the module in the
// folder dir with the file modfile sees them. Their bodies are compiled, not read: "go list
// -export" says where the results lie.
func Load(dir, modfile string, paths []string) (map[string]*types.Package, error) {
	cmd := exec.Command("go", append([]string{
		"list", "-modfile=" + modfile, "-e", "-export", "-deps", "-json=ImportPath,Export,Error"}, paths...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -modfile=%s: %w\n%s", modfile, err, stderr.Bytes())
	}
	exports := make(map[string]string)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Export != "" {
			exports[p.ImportPath] = p.Export
		}
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file := exports[path]
		if file == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(file)
	})
	loaded := make(map[string]*types.Package)
	for _, path := range paths {
		if exports[path] == "" {
			continue // it is not there, or does not compile: all of it is missing
		}
		if loaded[path], err = imp.Import(path); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}
