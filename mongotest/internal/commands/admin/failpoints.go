package admin

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/failpoint"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{Name: "configureFailPoint", AdminOnly: true, NoAuth: true, Where: server.Anywhere,
		Run: runConfigureFailPoint})
	server.Register(&server.Command{Name: "waitForFailPoint", AdminOnly: true, NoAuth: true, Where: server.Anywhere,
		Run: runWaitForFailPoint})
}

func runConfigureFailPoint(r *server.Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if !failpoint.Names[name] || r.Routing != nil && failpoint.MongodOnly[name] {
		return dst, srverr.New(srverr.FailPointSetFailed, "%s not found", name)
	}
	set, err := failpoint.Parse(r.Body)
	if err != nil {
		return dst, err
	}
	count := r.Node.SetFailPoint(name, set)
	return bson.AppendInt32(dst, "count", int32(count)), nil
}

func runWaitForFailPoint(r *server.Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if !failpoint.Names[name] {
		return dst, srverr.New(srverr.FailPointSetFailed, "%s not found", name)
	}
	if r.Body.Lookup("timesEntered").IsZero() {
		return dst, args.MissingField("waitForFailPoint.timesEntered")
	}
	want, _ := args.NumberOf(r.Body.Lookup("timesEntered"))
	ms, _ := args.NumberOf(r.Body.Lookup("maxTimeMS"))
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	f := r.Node.Faults()
	for {
		entered, changed := f.Progress(name)
		if entered >= want {
			return dst, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return dst, server.ErrMaxTime()
		}
		if _, err := r.Wait(changed, left); err != nil {
			return dst, err
		}
	}
}
