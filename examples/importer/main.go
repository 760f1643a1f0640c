// Command importer loads a file of JSON lines into a collection and shows how far it is.
//
//	go run ./cmd/allium serve --replset 1 --port 27017          # a server, until interrupted
//	go run ./examples/importer -to shop.books books.jsonl
//
// It may be interrupted and run again, since it skips what is there already: a document without an
// _id gets one that is made of the file's name and the line. Lines that cannot be stored are
// listed, and stop nothing; the exit status says that there were some. $MONGODB_URI names another
// server.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/bson"
)

func main() {
	to := flag.String("to", "test.imported", "the `database.collection` to import into")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *to, flag.Arg(0), os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "importer:", err)
		os.Exit(1)
	}
}

// run imports a file and prints its progress each second.
func run(ctx context.Context, to, file string, out io.Writer) error {
	db, collection, ok := strings.Cut(to, ".")
	if !ok {
		return fmt.Errorf("%q is not database.collection", to)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	client, err := allium.Open(cmp.Or(os.Getenv("MONGODB_URI"), "mongodb://localhost:27017"), allium.ClientOptions{
		AppName: "importer",
		Timeout: new(time.Minute), // of each batch, with its retries
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))

	p := &progress{out: out, size: info.Size(), begin: time.Now()}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ended := make(chan struct{})
	var printer sync.WaitGroup
	printer.Go(func() {
		for {
			select {
			case <-tick.C:
				p.print()
			case <-ended:
				return
			}
		}
	})
	i := importer{to: allium.CollectionOf[bson.Raw](client.Database(db), collection), name: filepath.Base(file),
		progress: p}
	err = i.load(ctx, f)
	close(ended)
	printer.Wait()
	p.print()
	if err == nil && p.refused > 0 {
		err = fmt.Errorf("%d lines are not stored", p.refused)
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted: run it again to go on")
	}
	return err
}

// progress counts, and says how far an import is. It is safe for concurrent use.
type progress struct {
	out   io.Writer
	size  int64 // of the file
	begin time.Time

	mu                       sync.Mutex
	stored, skipped, refused int
	bytes                    int64 // of the file that are done with
}

func (p *progress) add(stored, skipped int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored, p.skipped, p.bytes = p.stored+stored, p.skipped+skipped, p.bytes+bytes
}

// refuse lists a line that cannot be stored.
func (p *progress) refuse(line int, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused++
	fmt.Fprintf(p.out, "line %d: %v\n", line, why)
}

func (p *progress) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	percent := 100.0
	if p.size > 0 {
		percent = 100 * float64(p.bytes) / float64(p.size)
	}
	took := time.Since(p.begin)
	fmt.Fprintf(p.out, "%3.0f %%: %d stored, %d there already, %d refused; %.0f a second",
		percent, p.stored, p.skipped, p.refused, float64(p.stored)/took.Seconds())
	if p.bytes > 0 && p.bytes < p.size {
		left := time.Duration(float64(took) * float64(p.size-p.bytes) / float64(p.bytes))
		fmt.Fprintf(p.out, "; %v left", left.Round(time.Second))
	}
	fmt.Fprintln(p.out)
}
