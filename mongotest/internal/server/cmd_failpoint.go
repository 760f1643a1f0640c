package server

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/failpoint"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "configureFailPoint", AdminOnly: true, NoAuth: true, Where: Anywhere, Run: runConfigureFailPoint})
	register(&Command{Name: "waitForFailPoint", AdminOnly: true, NoAuth: true, Where: Anywhere, Since: release.At(4, 4, 0), Run: runWaitForFailPoint})
}

func runConfigureFailPoint(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if !failpoint.Names[name] || r.Node.role == Mongos && failpoint.MongodOnly[name] {
		return dst, srverr.New(srverr.FailPointSetFailed, "%s not found", name)
	}
	set, err := failpoint.Parse(r.Body)
	if err != nil {
		return dst, err
	}
	count := r.Node.setFailPoint(name, set)
	return bson.AppendInt32(dst, "count", int32(count)), nil
}

// setFailPoint sets a fail point and returns how often it had fired on the node before.
func (n *Node) setFailPoint(name string, p *failpoint.Point) int64 {
	stops := (name == "stopReplProducer" || name == "rsSyncApplyStop") && n.set != nil
	on := p.On()
	count, held := n.faults.Set(name, p, stops)
	switch {
	case !stops || held == on:
	case on:
		n.set.Hold(n)
	default:
		n.set.Release(n)
	}
	return count
}

func runWaitForFailPoint(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if !failpoint.Names[name] {
		return dst, srverr.New(srverr.FailPointSetFailed, "%s not found", name)
	}
	if r.Body.Lookup("timesEntered").IsZero() {
		return dst, arg.MissingField("waitForFailPoint.timesEntered")
	}
	want, _ := arg.Number(r.Body.Lookup("timesEntered"))
	ms, _ := arg.Number(r.Body.Lookup("maxTimeMS"))
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	f := &r.Node.faults
	for {
		entered, changed := f.Progress(name)
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
