package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// lanes are who does something in an operation, from the program to the server.
var lanes = []string{"program", "operation", "topology", "pool", "server"}

// arrows are what the messages of a log are in the picture: from one lane to another.
var arrows = map[string]struct {
	from, to int
	text     string
	bad      bool
}{
	"Server selection started":    {1, 2, "select a server", false},
	"Server selection succeeded":  {2, 1, "the primary", false},
	"Connection checkout started": {1, 3, "check a connection out", false},
	"Connection checked out":      {3, 1, "an idle one", false},
	"Command started":             {1, 4, "find", false},
	"Command failed":              {4, 1, "an error that may be retried", true},
	"Command succeeded":           {4, 1, "the reply", false},
	"Connection checked in":       {1, 3, "check it in", false},
}

// drawOperation draws the messages of an operation's log in their order.
func drawOperation(messages []string) (*drawing, error) {
	const left, lane, top, row = 90, 200, 70, 34
	x := func(n int) int { return left + lane*n }
	d := &drawing{title: "Life of an operation", width: 960, height: top + row*(len(messages)+2) + 30}
	end := d.height - 24
	for i, name := range lanes {
		d.rule("pic-life", fmt.Sprintf("M%d 46 V%d", x(i), end))
		d.box("pic-box", x(i)-60, 14, 120, 32, name)
	}
	y := top + row/2
	arrow := func(from, to int, text string, bad bool) {
		side := 1
		if to < from {
			side = -1
		}
		d.way(bad, fmt.Sprintf("M%d %d H%d", x(from)+side*2, y, x(to)-side*3))
		d.text("pic-text", "middle", (x(from)+x(to))/2, y-6, text)
		y += row
	}
	arrow(0, 1, "FindOne(ctx, filter)", false)
	first := y
	attempt := 0
	for _, m := range messages {
		a, ok := arrows[m]
		if !ok {
			return nil, fmt.Errorf("the picture of an operation has nothing for %q", m)
		}
		if m == "Server selection started" {
			if attempt++; attempt > 1 {
				y += row / 2
			}
			d.text("pic-soft", "end", x(1)-12, y+4, fmt.Sprintf("attempt %d", attempt))
		}
		arrow(a.from, a.to, a.text, a.bad)
	}
	last := y - row
	arrow(1, 0, "(T, error)", false)
	d.rule("pic-line", fmt.Sprintf("M%d %d h-8 V%d h8", x(0)-4, first-row, last+row))
	for i, line := range []string{"Timeout", "and ctx", "bound", "it all"} {
		d.text("pic-soft", "end", x(0)-18, (first+last)/2-20+16*i, line)
	}
	return d, nil
}

// operation runs a FindOne whose first attempt fails, and returns the messages of its log.
func operation(ctx context.Context) ([]string, error) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	log := &steps{}
	client, err := allium.Open(d.URI(), allium.ClientOptions{
		Logger: slog.New(log),
		LogLevels: map[allium.LogComponent]slog.Level{
			allium.LogCommand: slog.LevelDebug, allium.LogConnection: slog.LevelDebug,
			allium.LogServerSelection: slog.LevelDebug, allium.LogTopology: slog.LevelError,
		},
	})
	if err != nil {
		return nil, err
	}
	defer client.Close(ctx)
	coll := client.Database("app").Collection("users")
	// from now on there is an idle connection
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "name", Value: "Ada"}}); err != nil {
		return nil, err
	}
	d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, Code: 6})
	log.begin()
	_, err = coll.FindOne(ctx, bson.M{"name": "Ada"})
	return log.end(), err
}

// steps is a log handler that keeps the messages.
type steps struct {
	mu   sync.Mutex
	list []string
}

func (s *steps) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

func (s *steps) end() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *steps) Enabled(context.Context, slog.Level) bool { return true }
func (s *steps) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *steps) WithGroup(string) slog.Handler            { return s }

func (s *steps) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, r.Message)
	return nil
}
