package admin

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, c := range []*server.Command{
		{Name: "replSetGetConfig", Needs: server.OnCluster("replSetGetConfig"), Run: runReplConfig},
		{Name: "replSetStepDown", Needs: server.OnCluster("replSetStateChange"), Run: runStepDown},
		{Name: "replSetStepUp", Needs: server.OnCluster("replSetStateChange"), Run: runStepUp},
		{Name: "replSetFreeze", Needs: server.OnCluster("replSetStateChange"), Run: runFreeze},
		{Name: "replSetInitiate", Needs: server.OnCluster("replSetConfigure"), Run: runInitiate},
		{Name: "replSetReconfig", Needs: server.OnCluster("replSetConfigure"), Run: runReconfig},
		{Name: "replSetGetRBID", Needs: server.Internal, Run: runRBID},
		{Name: "replSetMaintenance", Needs: server.OnCluster("replSetStateChange"), Run: runReplNothing},
		{Name: "replSetSyncFrom", Needs: server.OnCluster("replSetStateChange"), Run: runReplNothing},
	} {
		c.AdminOnly, c.Where = true, server.Anywhere
		c.Roles = server.Mongod
		server.Register(c)
	}
}

func init() {
	server.Register(&server.Command{
		Name: "replSetGetStatus", AdminOnly: true, Needs: server.OnCluster("replSetGetStatus"), Where: server.Anywhere,
		Mongos: server.OnMongos{Run: refuseReplStatus}, Run: runReplStatus,
	})
}

func init() {
	server.Register(&server.Command{
		Name: "shutdown", Help: "shutdown the database.  must run against admin db", AdminOnly: true,
		Needs: server.OnCluster("shutdown"), Where: server.Anywhere, Run: runShutdown,
	})
}

// runShutdown ends the process. A primary steps down first, which takes another member that has
// caught up in time, unless it is alone or forced.
func runShutdown(r *server.Request, dst []byte) ([]byte, error) {
	const period = 120 * time.Second // for which it is not elected again
	wait := int64(10)
	if r.Version().AtLeast(5, 0) {
		wait = 15
	}
	if v := r.Body.Lookup("timeoutSecs"); !v.IsZero() {
		wait, _ = args.NumberOf(v)
	}
	set := r.Node.Set()
	if set != nil && !set.Single() && set.Primary() == r.Node {
		err := set.StepDown(r, r.Node, period, time.Duration(max(wait, 0))*time.Second, r.Body.Lookup("force").AsBool())
		if err != nil {
			return dst, err
		}
	}
	r.EndProcess()
	return dst, nil
}

// replicated refuses replication commands on a standalone.
func replicated(r *server.Request) error {
	if r.Node.Set() == nil {
		return srverr.New(srverr.NoReplicationEnabled, "not running with --replSet")
	}
	return nil
}

func runReplNothing(r *server.Request, dst []byte) ([]byte, error) { return dst, replicated(r) }

func runRBID(r *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendInt32(dst, "rbid", 1), replicated(r)
}

func refuseReplStatus(_ *server.Request, dst []byte) ([]byte, error) {
	info := bsondoc.Single("info", bsondoc.StringValue("mongos"))
	return dst, &srverr.Error{Msg: "replSetGetStatus is not supported through mongos", Extra: info}
}

func runReplStatus(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	return r.Node.Set().AppendStatus(dst, r.Node), nil
}

func runReplConfig(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	return r.Node.Set().AppendConfig(dst, r.Version()), nil
}

func runStepDown(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	force := r.Body.Lookup("force").AsBool()
	secs, ok := args.NumberOf(r.Arg())
	if !ok || secs == 0 {
		secs = 60
	}
	catchUp := int64(10)
	if force {
		catchUp = 0
	}
	if v := r.Body.Lookup("secondaryCatchUpPeriodSecs"); !v.IsZero() {
		catchUp, _ = args.NumberOf(v)
	}
	switch {
	case secs < 0:
		return dst, srverr.New(srverr.BadValue, "stepdown period must be a positive integer")
	case catchUp < 0:
		return dst, srverr.New(srverr.BadValue, "secondaryCatchUpPeriodSecs period must be a positive or absent")
	case secs < catchUp && !r.Body.Lookup("secondaryCatchUpPeriodSecs").IsZero():
		return dst, srverr.New(srverr.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	catchUp = min(catchUp, secs)
	return dst, r.Node.Set().StepDown(r, r.Node, time.Duration(secs)*time.Second, time.Duration(catchUp)*time.Second,
		force)
}

func runStepUp(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	if r.Node.IsPrimary() {
		return dst, nil
	}
	return dst, r.Node.Set().StepUp(r.Node)
}

func runFreeze(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	secs, _ := args.NumberOf(r.Arg())
	if secs < 0 {
		return dst, srverr.New(srverr.BadValue, "freeze seconds must be positive")
	}
	if r.Node.IsPrimary() {
		return dst, srverr.New(srverr.NotSecondary,
			"cannot freeze node when primary or running for election. state: Primary")
	}
	r.Node.Set().Freeze(r.Node, time.Duration(secs)*time.Second)
	if secs == 0 {
		return bson.AppendString(dst, "info", "unfreezing"), nil
	}
	return dst, nil
}

func runInitiate(r *server.Request, dst []byte) ([]byte, error) {
	if r.Node.Set() == nil {
		return dst, srverr.New(srverr.NoReplicationEnabled, "This node was not started with the replSet option")
	}
	return dst, srverr.New(srverr.AlreadyInitialized, "already initialized")
}

// runReconfig takes over what can change while the set runs: priorities, votes, tags, hidden, and
// the write concern modes.
func runReconfig(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	if r.Arg().Type != bson.TypeEmbeddedDocument {
		return dst, srverr.New(0, "no configuration specified")
	}
	s := r.Node.Set()
	if !r.Node.IsPrimary() && !r.Body.Lookup("force").AsBool() {
		return dst, srverr.New(srverr.NotWritablePrimary,
			"New config is rejected :: caused by :: replSetReconfig should only be run on a writable PRIMARY. Current state %s;", s.State(r.Node))
	}
	return dst, s.Reconfigure(r.Arg().Value)
}
