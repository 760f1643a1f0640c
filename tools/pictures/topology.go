package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"allium"
	"allium/event"
	"allium/mongotest"
)

// frame is what a client knows of a replica set at one moment, and what it does then.
type frame struct {
	Kind          string
	Members       []string // the kind of each, in an order that stays
	Writes, Reads bool     // whether these find a server, reads with any read preference
}

// says is what the picture says about each frame.
var says = [][2]string{
	{"Open has returned", "a monitor asks each member"},
	{"all have answered", ""},
	{"the primary was killed", "the others hold an election"},
	{"one has won it", "the dead one is asked again"},
}

// drawTopology draws what a client knows, frame by frame.
func drawTopology(frames []frame) (*drawing, error) {
	if len(frames) != len(says) {
		return nil, fmt.Errorf("the picture of a topology has %d frames, want %d", len(frames), len(says))
	}
	d := &drawing{title: "A replica set as a client sees it", width: 960, height: 400}
	const left, column, box = 20, 237, 209
	for i, f := range frames {
		x := left + column*i
		d.text("pic-strong", "start", x, 28, fmt.Sprintf("%d. %s", i+1, says[i][0]))
		d.text("pic-soft", "start", x, 46, says[i][1])
		for n, kind := range f.Members {
			class := map[string]string{"RSPrimary": "pic-mark", "Unknown": "pic-gone"}[kind]
			if class == "" {
				class = "pic-box"
			}
			d.box(class, x, 64+76*n, box, 62, fmt.Sprintf("member %d", n+1), kind)
		}
		d.text("pic-text", "start", x, 314, f.Kind)
		d.text("pic-soft", "start", x, 338, "writes: "+map[bool]string{true: "to the primary", false: "wait"}[f.Writes])
		d.text("pic-soft", "start", x, 356,
			"reads from secondaries: "+map[bool]string{true: "go on", false: "wait"}[f.Reads])
		if i > 0 {
			d.way(false, fmt.Sprintf("M%d 171 h%d", x-column+box+4, column-box-8))
		}
	}
	d.text("pic-soft", "start", left, 388, "Waiting ends with the next primary, or with Timeout, the context or serverSelectionTimeoutMS.")
	return d, nil
}

// topology opens a client on a replica set, kills the primary, and returns what the client knew:
// before it knew anything, with the primary, without one, and with the next one.
func topology(ctx context.Context) ([]frame, error) {
	d, err := mongotest.Open(mongotest.ReplicaSet(3), mongotest.ElectionDelay(500*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	all := make(chan *event.TopologyDescription, 1000) // more than come
	client, err := allium.Open(d.URI(), allium.ClientOptions{ServerMonitor: &event.ServerMonitor{
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) { all <- e.NewDescription },
	}})
	if err != nil {
		return nil, err
	}
	defer client.Close(ctx)
	// until waits for a description like that, and returns it.
	until := func(is func(*event.TopologyDescription) bool) *event.TopologyDescription {
		for t := range all {
			if is(t) {
				return t
			}
		}
		return nil // nobody closes the channel
	}
	unknown := func(t *event.TopologyDescription) (n int) {
		for _, s := range t.Servers {
			if s.Kind == event.UnknownServer {
				n++
			}
		}
		return n
	}
	first := until(func(t *event.TopologyDescription) bool { return unknown(t) == 3 })
	before := until(func(t *event.TopologyDescription) bool { return unknown(t) == 0 && t.Primary() != nil })
	d.Primary().Kill()
	without := until(func(t *event.TopologyDescription) bool { return unknown(t) == 1 && t.Primary() == nil })
	after := until(func(t *event.TopologyDescription) bool { return unknown(t) == 1 && t.Primary() != nil })

	// The members by their parts in the story: the first primary, the next one, the other.
	order := []string{before.Primary().Addr, after.Primary().Addr}
	for _, s := range before.Servers {
		if !slices.Contains(order, s.Addr) {
			order = append(order, s.Addr)
		}
	}
	var frames []frame
	for _, t := range []*event.TopologyDescription{first, before, without, after} {
		f := frame{Kind: t.Kind.String(), Writes: t.HasWritableServer()}
		for _, addr := range order {
			kind := t.Server(addr).Kind
			f.Members = append(f.Members, kind.String())
			f.Reads = f.Reads || kind == event.RSPrimary || kind == event.RSSecondary
		}
		frames = append(frames, f)
	}
	return frames, nil
}
