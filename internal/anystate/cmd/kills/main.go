//go:build unix

// Command kills ends "allium serve --data" at random moments, and sees that the next one has the
// old state or the new one:
//
//	go run ./internal/anystate/cmd/kills -n 1000
//
// A process is killed while it starts, while it serves, or while it writes its state after SIGTERM,
// or it may write no file longer than some size, as on a disk that is full.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/anystate"
)

func main() {
	n := flag.Int("n", 1000, "how many processes to end")
	seed := flag.Uint64("seed", rand.Uint64(), "of the random numbers")
	flag.Parse()
	fmt.Printf("seed %d\n", *seed)
	r, err := run(context.Background(), *n, *seed, os.Stdout)
	fmt.Print(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The ways to end a process.
const (
	starting = "killed at the start"
	serving  = "killed while serving"
	writing  = "killed after SIGTERM"
	full     = "no room on the disk"
	orderly  = "ended by SIGTERM"
)

var ways = []string{starting, serving, writing, writing, writing, writing, full, full, orderly}

// report counts what was there at the next start, by the way in which the process had ended.
type report map[string]*outcome

type outcome struct{ old, fresh int }

func (r report) String() string {
	var b bytes.Buffer
	for _, way := range []string{starting, serving, writing, full, orderly} {
		if o := r[way]; o != nil {
			fmt.Fprintf(&b, "%-21s %5d: the old state %5d, the new one %5d\n", way, o.old+o.fresh, o.old, o.fresh)
		}
	}
	return b.String()
}

// A place is where states are kept, and what may be there.
type place struct {
	path string
	last string            // how the last process ended
	old  map[string]string // what was there before it
	new  map[string]string // what it had at its end; nil: the same
	took time.Duration     // how long a process took to write, the last time that one did
}

// run ends n processes and looks at what each leaves.
func run(ctx context.Context, n int, seed uint64, log io.Writer) (report, error) {
	dir, err := os.MkdirTemp("", "allium-kills-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	tool := filepath.Join(dir, "allium")
	build := exec.CommandContext(ctx, "go", "build", "-o", tool, "allium/cmd/allium")
	build.Stderr = log
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	counts := report{}
	var places []*place
	for _, name := range []string{"data", "data.archive", "data.archive.gz"} {
		places = append(places, &place{path: filepath.Join(dir, name), took: 50 * time.Millisecond})
	}
	for i := range n + len(places) { // a last look at each
		p := places[i%len(places)]
		way := ways[r.IntN(len(ways))]
		if i >= n {
			way = orderly
		}
		if err := p.end(ctx, tool, way, r, counts); err != nil {
			return counts, fmt.Errorf("process %d, %s at %s, after one that was %s: %w", i, way, filepath.Base(p.path),
				p.last, err)
		}
		if i%100 == 99 {
			fmt.Fprintf(log, "%d\n", i+1)
		}
	}
	return counts, nil
}

// end starts a process, compares what it has with what there may be, changes that, and ends it.
func (p *place) end(ctx context.Context, tool, way string, r *rand.Rand, counts report) error {
	args := []string{tool, "serve", "--port", "0", "--json", "--data", p.path}
	if way == full { // counted in blocks of 512 bytes, and small ones show all files of some size
		args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, r.IntN(200)), "sh"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Process.Kill()
	if way == starting {
		time.Sleep(time.Duration(r.Int64N(int64(60 * time.Millisecond))))
		cmd.Process.Kill()
		cmd.Wait()
		// What the one before has left is still to be compared.
		count(counts, way, false)
		return nil
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		cmd.Wait()
		return fmt.Errorf("no start: %w: %s", err, said.String())
	}
	var ready struct{ URI string }
	if err := json.Unmarshal(line, &ready); err != nil {
		return err
	}
	client, err := allium.Open(ready.URI)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	now, err := anystate.Describe(ctx, client)
	if err != nil {
		return err
	}
	if err := p.compare(now, counts); err != nil {
		return err
	}
	if err := change(ctx, client, r); err != nil {
		return err
	}
	if p.new, err = anystate.Describe(ctx, client); err != nil {
		return err
	}
	p.old, p.last = now, way
	client.Close(ctx)
	if way == serving {
		cmd.Process.Kill()
		cmd.Wait()
		return nil
	}
	begun := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if way == writing {
		time.Sleep(time.Duration(r.Int64N(int64(p.took) * 5 / 4)))
		cmd.Process.Kill()
		cmd.Wait()
		return nil
	}
	switch err := cmd.Wait(); {
	case way == orderly && err != nil:
		return fmt.Errorf("%w: %s", err, said.String())
	case way == orderly:
		p.took, p.old = time.Since(begun), nil
	case err != nil: // it said that it could not, and left nothing
		p.new = nil
		if !bytes.Contains(said.Bytes(), []byte("file too large")) {
			return fmt.Errorf("%w: %s", err, said.String())
		}
	default:
		p.old = nil
	}
	return nil
}

// compare looks at what the process before has left: one of two states, and nothing else.
func (p *place) compare(now map[string]string, counts report) error {
	if p.last == "" {
		return nil
	}
	if p.last == serving {
		p.new = nil
	}
	if p.new != nil && len(anystate.Differences(now, p.new)) == 0 {
		count(counts, p.last, true)
		return nil
	}
	if p.old != nil && len(anystate.Differences(now, p.old)) == 0 {
		count(counts, p.last, false)
		return nil
	}
	want := p.old
	if want == nil {
		want = p.new
	}
	return fmt.Errorf("the state is neither the old one nor the new one: %v", anystate.Differences(now, want))
}

func count(counts report, way string, fresh bool) {
	o := counts[way]
	if o == nil {
		o = &outcome{}
		counts[way] = o
	}
	if fresh {
		o.fresh++
	} else {
		o.old++
	}
}

// change makes something new, and drops something.
func change(ctx context.Context, client *allium.Client, r *rand.Rand) error {
	names, err := client.ListDatabaseNames(ctx)
	if err != nil {
		return err
	}
	if r.IntN(3) == 0 {
		for _, name := range names {
			if name != "admin" && name != "config" && name != "local" {
				if err := client.Database(name).Drop(ctx); err != nil {
					return err
				}
			}
		}
	}
	if r.IntN(2) == 0 {
		if err := anystate.Make(ctx, client, r, anystate.Options{Major: 8, Accounts: r.IntN(4) == 0}); err != nil {
			return err
		}
	}
	// In several files, and some of it larger than the limits of size.
	for _, coll := range []string{"a", "b", "c"} {
		doc := bson.D{{Key: "n", Value: r.Int64()}, {Key: "text", Value: bson.Binary{Data: noise(r, r.IntN(40000))}}}
		if _, err := client.Database("kills").Collection(coll).InsertOne(ctx, doc); err != nil {
			return err
		}
	}
	return nil
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
