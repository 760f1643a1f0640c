package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	official "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"allium"
	"allium/bson"
)

// linesPerFile is how many documents an LDJSON file has.
const linesPerFile = 5000

// parallelTasks are the specification's benchmarks that move files to and from a server, several at
// a time.
func parallelTasks(env *Env) ([]Task, error) {
	d, err := corpusDocs(env, "parallel")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "allium-bench-")
	if err != nil {
		return nil, err
	}
	env.onClose(func() error { return os.RemoveAll(dir) })
	files, size, err := unpack("parallel.tgz", "ldjson_multi", dir, env.Files)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "export")
	if err := os.Mkdir(out, 0o700); err != nil {
		return nil, err
	}
	imports := Task{Name: "parallel/LDJSON multi-file import", Bytes: size, Scale: 1, Before: d.fresh(corpus),
		CPUOfC: 0.6, C: d.cTask("import", append([]string{corpus, "-"}, files...)...),
		Allium: repeat(func() error {
			c := allium.CollectionOf[bson.Raw](d.ourDB, corpus)
			return eachFile(files, func(lines [][]byte) error {
				docs := make([]bson.Raw, len(lines))
				for i, line := range lines {
					if err := bson.UnmarshalExtJSON(line, &docs[i]); err != nil {
						return err
					}
				}
				_, err := c.InsertMany(context.Background(), docs, allium.InsertManyOptions{Unordered: true})
				return err
			})
		}),
		Official: repeat(func() error {
			c := d.theirDB.Collection(corpus)
			return eachFile(files, func(lines [][]byte) error {
				docs := make([]official.Raw, len(lines))
				for i, line := range lines {
					if err := official.UnmarshalExtJSON(line, true, &docs[i]); err != nil {
						return err
					}
				}
				_, err := c.InsertMany(context.Background(), docs, options.InsertMany().SetOrdered(false))
				return err
			})
		})}
	exports := Task{Name: "parallel/LDJSON multi-file export", Bytes: size, Scale: 1, CPUOfC: 0.6,
		C:        d.cTask("export", "exported", out),
		Before:   func() error { return d.exportable(files) },
		Allium:   repeat(func() error { return exportOurs(d.ourDB, out) }),
		Official: repeat(func() error { return exportTheirs(d.theirDB, out) })}
	gridFS, err := d.manyFilesTasks(dir, max(env.Files/2, 1))
	return append([]Task{imports, exports}, gridFS...), err
}

// exportable fills the collection "exported" once.
func (d *docs) exportable(files []string) error {
	ctx := context.Background()
	c := allium.CollectionOf[bson.Raw](d.ourDB, "exported")
	if n, err := c.EstimatedDocumentCount(ctx); err != nil || n > 0 {
		return err
	}
	return eachFile(files, func(lines [][]byte) error {
		docs := make([]bson.Raw, len(lines))
		for i, line := range lines {
			if err := bson.UnmarshalExtJSON(line, &docs[i]); err != nil {
				return err
			}
		}
		_, err := c.InsertMany(ctx, docs)
		return err
	})
}

// parallel calls do for each item, on twice as many goroutines as there are processors.
func parallel[T any](items []T, do func(T) error) error {
	work := make(chan T)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range 2 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for item := range work {
				if err := do(item); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, item := range items {
		work <- item
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

// eachFile hands over the lines of every file.
func eachFile(files []string, do func(lines [][]byte) error) error {
	return parallel(files, func(name string) error {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := do(bytes.Split(bytes.TrimSpace(data), []byte("\n"))); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		return nil
	})
}

// export writes batches of documents to files: one goroutine reads the cursor, the others make
// JSON.
func export[T any](dir string, read func(yield func([]T) error) error,
	appendJSON func([]byte, T) ([]byte, error)) error {
	type batch struct {
		name string
		docs []T
	}
	work := make(chan batch)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range 2 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for b := range work {
				if err := writeLines(b.name, b.docs, appendJSON); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	n := 0
	err := read(func(docs []T) error {
		work <- batch{filepath.Join(dir, fmt.Sprintf("ldjson%03d.txt", n)), docs}
		n++
		return nil
	})
	close(work)
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

func writeLines[T any](name string, docs []T, appendJSON func([]byte, T) ([]byte, error)) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for _, doc := range docs {
		if line, err = appendJSON(line[:0], doc); err != nil {
			break
		}
		w.Write(append(line, '\n'))
	}
	return errors.Join(err, w.Flush(), f.Close())
}

func exportOurs(db *allium.Database, dir string) error {
	ctx := context.Background()
	return export(dir, func(yield func([]bson.Raw) error) error {
		cur, err := allium.CollectionOf[bson.Raw](db, "exported").Find(ctx, bson.D{})
		if err != nil {
			return err
		}
		var docs []bson.Raw
		for doc, err := range cur.Seq(ctx) {
			if err != nil {
				return err
			}
			if docs = append(docs, doc); len(docs) == linesPerFile {
				if err := yield(docs); err != nil {
					return err
				}
				docs = nil
			}
		}
		return nil
	}, func(dst []byte, doc bson.Raw) ([]byte, error) { return bson.AppendExtJSON(dst, doc, false) })
}

func exportTheirs(db *mongo.Database, dir string) error {
	ctx := context.Background()
	return export(dir, func(yield func([]official.Raw) error) error {
		cur, err := db.Collection("exported").Find(ctx, official.D{})
		if err != nil {
			return err
		}
		var docs []official.Raw
		for cur.Next(ctx) {
			if docs = append(docs, slices.Clone(cur.Current)); len(docs) == linesPerFile {
				if err := yield(docs); err != nil {
					return err
				}
				docs = nil
			}
		}
		return errors.Join(cur.Err(), cur.Close(ctx))
	}, func(dst []byte, doc official.Raw) ([]byte, error) {
		b, err := official.MarshalExtJSON(doc, false, false)
		return append(dst, b...), err
	})
}

// unpack writes the first files of a folder of one of the specification's archives to a folder.
func unpack(archive, folder, dir string, most int) (names []string, size int, err error) {
	all, err := readArchivePaths(archive, func(name string) bool { return strings.Contains(name, "/"+folder+"/") })
	if err != nil {
		return nil, 0, err
	}
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	names = names[:min(most, len(names))]
	for i, name := range names {
		data := all[name]
		names[i] = filepath.Join(dir, filepath.Base(name))
		size += len(data)
		if err := os.WriteFile(names[i], data, 0o600); err != nil {
			return nil, 0, err
		}
	}
	return names, size, nil
}
