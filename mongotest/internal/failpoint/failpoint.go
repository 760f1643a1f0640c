// Package failpoint holds the fail points of a node: which there are, and when it is whose turn to
// fire. What firing means is up to the commands.
package failpoint

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// mode is when a fail point fires.
type mode int

const (
	failOff mode = iota
	failAlways
	failTimes
	failSkip
	failRandom
)

// Point is a fail point as it was set. It may be set on several nodes at once, which then count
// together.
type Point struct {
	mu          sync.Mutex
	mode        mode
	left        int64 // for times and skip
	probability float64
	data        bson.Raw
}

// On reports whether the fail point may fire.
func (p *Point) On() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode != failOff
}

// turn reports whether it is the fail point's turn to fire for something that matches.
func (p *Point) turn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.mode {
	case failOff:
		return false
	case failTimes:
		if p.left--; p.left <= 0 {
			p.mode = failOff
		}
	case failSkip:
		if p.left > 0 {
			p.left--
			return false
		}
	case failRandom:
		return rand.Float64() < p.probability
	}
	return true
}

// entry is a node's entry of a fail point.
type entry struct {
	*Point
	entered int64         // how often it has fired on the node
	changed chan struct{} // closed when it fires or is set
	held    bool          // the member is held back because of it
}

// Node holds the fail points of a node. Most nodes have none, which costs one atomic load per look.
type Node struct {
	any    atomic.Bool
	mu     sync.Mutex
	points map[string]*entry
}

// entryLocked returns the entry of a fail point, which is off until it is set.
func (f *Node) entryLocked(name string) *entry {
	if f.points == nil {
		f.points = map[string]*entry{}
	}
	e := f.points[name]
	if e == nil {
		e = &entry{Point: &Point{}, changed: make(chan struct{})}
		f.points[name] = e
	}
	return e
}

func (e *entry) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// Names are the fail points that exist; what the others of a real server would do has no meaning
// here.
var Names = map[string]bool{
	"failCommand": true, "onPrimaryTransactionalWrite": true, "failGetMoreAfterCursorCheckout": true,
	"stopReplProducer": true, "rsSyncApplyStop": true, "failAllInserts": true, "failAllUpdates": true,
	"failAllRemoves": true, "failAllCommands": true, "maxTimeAlwaysTimeOut": true, "maxTimeNeverTimeOut": true,
	"waitInFindBeforeMakingBatch": true, "waitAfterPinningCursorBeforeGetMoreBatch": true,
	"waitWithPinnedCursorDuringGetMoreBatch": true, "waitBeforeUnpinningOrDeletingCursorAfterGetMoreBatch": true,
	"failReceivedGetmore": true, "hangBeforeWaitingForWriteConcern": true, "transactionCoordinatorOnceFail": true,
	"skipCheckingForNotMasterInCommandDispatch": true, "disableAwaitDataForGetMoreCmd": true,
	"setYieldAllLocksHang": true, "planExecutorAlwaysFails": true, "hangAfterCollectionInserts": true,
	"hangBeforeWritingDecision": true,
	"waitInIsMaster":            true, "waitInHello": true, "shardWaitInIsMaster": true, "shardWaitInHello": true,
}

// MongodOnly are those that a mongos does not have.
var MongodOnly = map[string]bool{
	"onPrimaryTransactionalWrite": true, "stopReplProducer": true, "rsSyncApplyStop": true, "failAllInserts": true,
	"failAllUpdates":            true,
	"hangBeforeWritingDecision": true, "failAllRemoves": true, "failReceivedGetmore": true,
	"hangAfterCollectionInserts": true,
}

// New returns a fail point that always fires: after skip times, or only so many times, if these are
// not zero.
func New(data bson.Raw, times, skip int) *Point {
	p := &Point{mode: failAlways, data: data}
	switch {
	case skip > 0:
		p.mode, p.left = failSkip, int64(skip)
	case times > 0:
		p.mode, p.left = failTimes, int64(times)
	}
	return p
}

// Fire returns the data of a fail point if it is set, matches, and its mode says that it is its
// turn.
func (f *Node) Fire(name string, match func(data bson.Raw) bool) (bson.Raw, bool) {
	if !f.any.Load() {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.points[name]
	if e == nil || e.data == nil && match != nil || match != nil && !match(e.data) || !e.turn() {
		return nil, false
	}
	e.entered++
	e.notify()
	return e.data, true
}

// Set sets a fail point and returns how often it had fired before. holds says that it holds the
// member back while it is on; held is whether it did so before.
func (f *Node) Set(name string, p *Point, holds bool) (count int64, held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entryLocked(name)
	count, held = e.entered, e.held
	e.Point = p
	e.notify()
	f.any.Store(true)
	if holds {
		e.held = p.On()
	}
	return count, held
}

// Standing reports whether a fail point is on, and returns a channel that is closed when it fires
// or is set.
func (f *Node) Standing(name string) (on bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entryLocked(name)
	return e.On(), e.changed
}

// Progress returns how often a fail point has fired, and a channel that is closed when it fires
// again or is set.
func (f *Node) Progress(name string) (entered int64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entryLocked(name)
	return e.entered, e.changed
}

// Active reports whether any fail point was ever set.
func (f *Node) Active() bool { return f.any.Load() }

// Status returns a fail point as getParameter shows it.
func (f *Node) Status(name string) (bson.Raw, bool) {
	if !Names[name] {
		return nil, false
	}
	f.mu.Lock()
	e := f.entryLocked(name)
	p := e.Point
	f.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	at, dst := bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "mode", int32(p.mode))
	data := p.data
	if data == nil {
		start, empty := bson.BeginDocument(nil)
		data = bson.EndDocument(empty, start)
	}
	dst = bson.AppendDocument(dst, "data", data)
	return bson.EndDocument(dst, at), true
}

// Parse reads the configureFailPoint command.
func Parse(cmd bson.Raw) (*Point, error) {
	p := &Point{}
	mode := cmd.Lookup("mode")
	switch mode.Type {
	case 0:
		return p, srverr.New(srverr.IllegalOperation, "When setting a failpoint, you must supply a 'mode'")
	case bson.TypeString:
		switch s, _ := mode.StringValue(); s {
		case "off":
			p.mode = failOff
		case "alwaysOn":
			p.mode = failAlways
		default:
			return p, srverr.New(srverr.BadValue, "unknown mode: %s", s)
		}
	case bson.TypeEmbeddedDocument:
		if err := p.parseMode(mode.Value); err != nil {
			return p, err
		}
	default:
		return p, srverr.New(srverr.TypeMismatch, "'mode' must be a string or JSON object")
	}
	if v := cmd.Lookup("data"); !v.IsZero() {
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return p, srverr.New(srverr.TypeMismatch, "the 'data' option must be a JSON object")
		}
		p.data = append(bson.Raw(nil), v.Value...)
	}
	return p, nil
}

func (p *Point) parseMode(doc bson.Raw) error {
	for _, m := range []struct {
		name string
		mode mode
	}{{"times", failTimes}, {"skip", failSkip}} {
		v := doc.Lookup(m.name)
		if v.IsZero() {
			continue
		}
		if !v.IsNumber() {
			return srverr.New(srverr.TypeMismatch, "Expected field \"%s\" to have numeric type, but found %s", m.name,
				bsontext.TypeName(v.Type))
		}
		n, exact := v.AsInt64()
		switch {
		case !exact:
			return srverr.New(
				srverr.BadValue, "Expected field \"%s\" to have a value exactly representable as a 64-bit integer, but found %s", m.name, bsontext.Element(m.name, v))
		case n < 0:
			return srverr.New(srverr.BadValue, "'%s' option to 'mode' must be positive", m.name)
		case n > math.MaxInt32:
			return srverr.New(srverr.BadValue, "'%s' option to 'mode' is too large", m.name)
		}
		p.mode, p.left = m.mode, n
		return nil
	}
	if v := doc.Lookup("activationProbability"); !v.IsZero() {
		if !v.IsNumber() {
			return srverr.New(srverr.TypeMismatch,
				"the 'activationProbability' option to 'mode' must be a double between 0 and 1")
		}
		f := toDouble(v)
		if f < 0 || f > 1 {
			return srverr.New(srverr.BadValue, "activationProbability must be between 0.0 and 1.0; found %s",
				probability(f))
		}
		p.mode, p.probability = failRandom, f
		return nil
	}
	return srverr.New(
		srverr.BadValue, "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'")
}

// toDouble returns a number as a double.
func toDouble(v bson.RawValue) float64 {
	if f, ok := v.Double(); ok {
		return f
	}
	if d, ok := v.Decimal128(); ok {
		f, _ := strconv.ParseFloat(d.String(), 64) // out of range: infinite
		return f
	}
	n, _ := v.AsInt64()
	return float64(n)
}

// probability renders a number as the server's messages do.
func probability(f float64) string {
	s := bsontext.CDouble(f, 16)
	if !strings.ContainsAny(s, ".ein") {
		s += ".0"
	}
	return s
}
