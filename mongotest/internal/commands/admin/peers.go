package admin

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// Commands that the members of sets and clusters have for each other. A client that asks for one
// learns that this is not their place.

func init() {
	for _, c := range []*server.Command{
		{Name: "replSetHeartbeat", Needs: server.Internal, Run: runForMembers},
		{Name: "replSetRequestVotes", Needs: server.Internal, Run: runForMembers},
		{Name: "replSetUpdatePosition", Needs: server.Internal, Run: runForMembers},
		{Name: "replSetTest", Needs: server.Internal, Run: runForMembers},
		{Name: "replSetAbortPrimaryCatchUp", Needs: server.OnCluster("replSetStateChange"), Run: runAbortCatchUp},
		{Name: "replSetStepDownWithForce", Needs: server.OnCluster("replSetStateChange"), Run: runStepDown},
		{Name: "replSetResizeOplog", Needs: server.OnCluster("replSetResizeOplog"), Run: runResizeOplog},
		{Name: "getDatabaseVersion", Needs: server.OnNamespace("getDatabaseVersion"), Run: runDatabaseVersion},
	} {
		c.Roles, c.AdminOnly, c.Where = server.Mongod, true, server.Anywhere
		server.Register(c)
	}
	server.Register(&server.Command{
		Name: "_addShard", Roles: server.Mongod, AdminOnly: true, Needs: server.Internal, WriteConcern: true,
		Parse: required("_addShard", "shardIdentity", args.Object[args.None](nil)), Run: server.OnlyOnShards,
	})
	server.Register(&server.Command{
		Name: "setFreeMonitoring", Roles: server.Mongod, AdminOnly: true, Needs: server.OnCluster("setFreeMonitoring"),
		Run: runSetFreeMonitoring,
	})
	for _, c := range []*server.Command{
		{Name: "_killOperations", AdminOnly: true, Needs: server.Internal,
			Parse: required("_killOperations", "operationKeys", args.Any[args.None](nil)), Run: server.Nothing},
		{Name: "connPoolSync", Needs: server.OnCluster("connPoolSync"), Run: server.Nothing},
		{Name: "shardConnPoolStats", Needs: server.OnCluster("connPoolStats"), Run: runConnPoolStats},
		{Name: "_isSelf", Needs: server.Free, OpQuery: true, Run: runIsSelf},
		{Name: "getDiagnosticData", AdminOnly: true, Needs: server.OnCluster("serverStatus", "replSetGetStatus"),
			Run: runDiagnosticData},
	} {
		c.Where = server.Anywhere
		server.Register(c)
	}
}

func runDatabaseVersion(_ *server.Request, dst []byte) ([]byte, error) {
	return dst, srverr.New(srverr.IllegalOperation, "getDatabaseVersion can only be run on shard servers")
}

// required checks a command that has one field of its own, which must be given.
func required(command, field string, f args.Field[args.None]) func(*server.Request) error {
	t := &args.Table[args.None]{Name: command, Required: []string{field},
		Fields: map[string]args.Field[args.None]{field: f}}
	return func(r *server.Request) error { return t.ParseCommand(r, nil) }
}

// runForMembers refuses what only the other members of a set ask.
func runForMembers(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.CommandNotSupported, "'%s' is only for the members of a replica set", r.Cmd.Name)
}

func runAbortCatchUp(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.IllegalOperation, "This node is not in catch-up mode.")
}

// runResizeOplog checks the size. The history of a deployment here has bounds of its own.
func runResizeOplog(r *server.Request, dst []byte) ([]byte, error) {
	if r.Node.Set() == nil {
		return dst, srverr.New(srverr.NamespaceNotFound, "oplog does not exist")
	}
	v := r.Body.Lookup("size")
	const least, most = 990, 1 << 30 // MB
	switch n, _ := args.NumberOf(v); {
	case v.IsZero():
	case !v.IsNumber():
		return dst, args.WrongTypes("replSetResizeOplog.size", v.Type, "[long, int, decimal, double']") // sic
	case n < least:
		return dst, srverr.New(srverr.BadValue, "BSON field 'size' value must be >= %d, actual value '%d'", least, n)
	case n > most:
		return dst, srverr.New(srverr.BadValue, "BSON field 'size' value must be <= %d, actual value '%d'", most, n)
	}
	return dst, nil
}

func runOnConfigServer(r *server.Request, dst []byte) ([]byte, error) {
	return dst, srverr.New(srverr.IllegalOperation, "%s can only be run on config servers", r.Cmd.Name)
}

// runSetFreeMonitoring answers as a server that was started without free monitoring.
func runSetFreeMonitoring(r *server.Request, dst []byte) ([]byte, error) {
	v := r.Body.Lookup("action")
	action, ok := v.StringValue()
	switch {
	case v.IsZero():
		return dst, args.MissingField("setFreeMonitoring.action")
	case !ok:
		return dst, args.WrongType("setFreeMonitoring.action", v.Type, "string")
	case action != "enable" && action != "disable":
		return dst, srverr.New(srverr.BadValue,
			"Enumeration value '%s' for field 'setFreeMonitoring.action' is not a valid value.", action)
	}
	return dst, srverr.New(50840, "Free Monitoring has been disabled via the command-line and/or config file")
}

// selfID stands for the process in _isSelf.
var selfID = bson.NewObjectID()

func runIsSelf(_ *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendObjectID(dst, "id", selfID), nil
}

// runDiagnosticData answers with what a server collects about itself now and then.
func runDiagnosticData(r *server.Request, dst []byte) ([]byte, error) {
	now := bson.NewDateTime(r.Node.Data().Clock.Now())
	at, dst := bson.BeginDocumentElement(dst, "data")
	dst = bson.AppendDateTime(dst, "start", now)
	inner, dst := bson.BeginDocumentElement(dst, "serverStatus")
	dst, err := runServerStatus(r, bson.AppendDateTime(dst, "start", now))
	if err != nil {
		return dst, err
	}
	dst = bson.EndDocument(bson.AppendDateTime(dst, "end", now), inner)
	return bson.EndDocument(bson.AppendDateTime(dst, "end", now), at), nil
}
