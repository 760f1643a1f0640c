package server

import (
	"math"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "configureFailPoint", AdminOnly: true, NoAuth: true, Where: Anywhere, Run: runConfigureFailPoint})
	register(&Command{Name: "waitForFailPoint", AdminOnly: true, NoAuth: true, Where: Anywhere, Since: Version{4, 4, 0}, Run: runWaitForFailPoint})
}

func runConfigureFailPoint(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if !failPointNames[name] || r.Node.role == Mongos && mongodFailPoints[name] {
		return dst, srverr.New(srverr.FailPointSetFailed, "%s not found", name)
	}
	set, err := parseFailPoint(r.Body)
	if err != nil {
		return dst, err
	}
	count := r.Node.setFailPoint(name, set)
	return bson.AppendInt32(dst, "count", int32(count)), nil
}

// setFailPoint sets a fail point and returns how often it had fired on the node before.
func (n *Node) setFailPoint(name string, p *failPoint) int64 {
	f := &n.faults
	f.mu.Lock()
	e := f.entryLocked(name)
	count, held, on := e.entered, e.held, p.on()
	e.failPoint = p
	e.notify()
	f.any.Store(true)
	stops := (name == "stopReplProducer" || name == "rsSyncApplyStop") && n.set != nil
	if stops {
		e.held = on
	}
	f.mu.Unlock()
	switch {
	case !stops || held == on:
	case on:
		n.set.hold(n)
	default:
		n.set.release(n)
	}
	return count
}

func parseFailPoint(cmd bson.Raw) (*failPoint, error) {
	p := &failPoint{}
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

func (p *failPoint) parseMode(doc bson.Raw) error {
	for _, m := range []struct {
		name string
		mode failMode
	}{{"times", failTimes}, {"skip", failSkip}} {
		v := doc.Lookup(m.name)
		if v.IsZero() {
			continue
		}
		if !v.IsNumber() {
			return srverr.New(srverr.TypeMismatch, "Expected field \"%s\" to have numeric type, but found %s", m.name, bsontext.TypeName(v.Type))
		}
		n, exact := v.AsInt64()
		switch {
		case !exact:
			return srverr.New(srverr.BadValue, "Expected field \"%s\" to have a value exactly representable as a 64-bit integer, but found %s", m.name, bsontext.Element(m.name, v))
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
			return srverr.New(srverr.TypeMismatch, "the 'activationProbability' option to 'mode' must be a double between 0 and 1")
		}
		f, ok := v.Double()
		if !ok {
			n, _ := number(v)
			f = float64(n)
		}
		if f < 0 || f > 1 {
			return srverr.New(srverr.BadValue, "activationProbability must be between 0.0 and 1.0; found %s", bsontext.Double(f))
		}
		p.mode, p.probability = failRandom, f
		return nil
	}
	return srverr.New(srverr.BadValue, "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'")
}

func runWaitForFailPoint(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if !failPointNames[name] {
		return dst, srverr.New(srverr.FailPointSetFailed, "%s not found", name)
	}
	if r.Body.Lookup("timesEntered").IsZero() {
		return dst, missingField("waitForFailPoint.timesEntered")
	}
	want, _ := number(r.Body.Lookup("timesEntered"))
	ms, _ := number(r.Body.Lookup("maxTimeMS"))
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	f := &r.Node.faults
	for {
		f.mu.Lock()
		p := f.entryLocked(name)
		entered, changed := p.entered, p.changed
		f.mu.Unlock()
		if entered >= want {
			return dst, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return dst, errMaxTime()
		}
		if _, err := r.Wait(changed, left); err != nil {
			return dst, err
		}
	}
}
