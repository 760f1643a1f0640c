// Package admin has the commands that ask about the deployment, its nodes and operations, and those
// that set them up: status, parameters, fail points, sessions, default concerns, replica sets.
package admin

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	for _, c := range []*server.Command{
		{Name: "serverStatus", Help: "returns lots of administrative server statistics",
			Needs: server.OnCluster("serverStatus"), Run: runServerStatus},
		{Name: "hostInfo", Help: "returns information about the daemon's host", Needs: server.OnCluster("hostInfo"),
			Run: runHostInfo},
		{Name: "getLog", Needs: server.OnCluster("getLog"), AdminOnly: true, Run: runGetLog},
		{Name: "getCmdLineOpts", Needs: server.OnCluster("getCmdLineOpts"), AdminOnly: true, Run: runCmdLineOpts},
		{Name: "whatsmyuri", Help: "{whatsmyuri:1}", DataLake: true, NoAuth: true, Run: runWhatsMyURI},
		{Name: "connectionStatus", DataLake: true, NoAuth: true, Run: runConnectionStatus},
		{Name: "logRotate", Needs: server.OnCluster("logRotate"), AdminOnly: true, Run: runLogRotate},
		{Name: "top", Needs: server.OnCluster("top"), AdminOnly: true, Roles: server.Mongod, Run: runTop},
		{Name: "features", Needs: server.Free, Run: runFeatures},
		{Name: "listCommands", NoAuth: true, Run: runListCommands},
		{Name: "availableQueryOptions", Needs: server.Free, Run: runQueryOptions},
		{Name: "driverOIDTest", Needs: server.Free, Roles: server.Mongod, Run: runOIDTest},
		{Name: "getFreeMonitoringStatus", Needs: server.OnCluster("checkFreeMonitoringStatus"), AdminOnly: true,
			Run: runFreeMonitoring},
		{Name: "fsync", Needs: server.OnCluster("fsync"), AdminOnly: true, Run: runFsync},
		{Name: "fsyncUnlock", Needs: server.OnCluster("unlock"), AdminOnly: true, Run: runFsyncUnlock},
		{Name: "connPoolStats", Needs: server.OnCluster("connPoolStats"), Run: runConnPoolStats},
		{
			Name: "lockInfo", Roles: server.Mongod, AdminOnly: true, Needs: server.OnCluster("serverStatus"),
			Run: runLockInfo,
		},
		{Name: "setIndexCommitQuorum", Needs: server.OnColl("createIndex"), Run: runIndexCommitQuorum},
		{Name: "rotateCertificates", Needs: server.OnCluster("rotateCertificates"), AdminOnly: true,
			Run: server.Nothing},
	} {
		c.Where = server.Anywhere
		server.Register(c)
	}
}

// runServerStatus answers with the sections that the client has not switched off.
func runServerStatus(r *server.Request, dst []byte) ([]byte, error) {
	n := r.Node
	now := n.Data().Clock.Now()
	up := time.Since(n.Started())
	dst = bsondoc.Append(dst, "host", n.Addr(), "version", n.Config().Version.String())
	process := "mongod"
	if n.Role() == server.Mongos {
		process = "mongos"
	}
	dst = bsondoc.Append(dst, "process", process, "pid", int64(os.Getpid()),
		"uptime", float64(int64(up.Seconds())), "uptimeMillis", up.Milliseconds(),
		"uptimeEstimate", int64(up.Seconds()), "localTime", bson.NewDateTime(now))
	sections := statusSections
	mirrored := r.Body.Lookup("mirroredReads")
	if !mirrored.IsZero() && mirrored.AsBool() && r.Version().AtLeast(4, 4) {
		sections = append(slices.Clip(sections), mirroredReads)
	}
	for _, s := range sections {
		if v := r.Body.Lookup(s.name); !v.IsZero() && !v.AsBool() || s.has != nil && !s.has(n) {
			continue
		}
		at, d := bson.BeginDocumentElement(dst, s.name)
		dst = bson.EndDocument(s.fill(r, d), at)
	}
	return dst, nil
}

// statusSection is a section of serverStatus.
type statusSection struct {
	name string
	has  func(n *server.Node) bool // nil: every node has it
	fill func(r *server.Request, dst []byte) []byte
}

// mirroredReads is a section that is there only if it is asked for. No read is mirrored.
var mirroredReads = statusSection{"mirroredReads", nil, func(_ *server.Request, dst []byte) []byte {
	return bson.AppendInt64(bson.AppendInt64(dst, "seen", 0), "sent", 0)
}}

// threefold appends what counts readers and writers: nobody waits here, and none holds a lock long.
func threefold(dst []byte, name string, total int32) []byte {
	at, dst := bson.BeginDocumentElement(dst, name)
	return bson.EndDocument(bsondoc.Append(dst, "total", total, "readers", int32(0), "writers", int32(0)), at)
}

func noMongos(n *server.Node) bool { return n.Role() != server.Mongos }

// statusSections are the sections of serverStatus that are there unless they are refused.
var statusSections = []statusSection{
	{"asserts", nil, func(r *server.Request, dst []byte) []byte {
		for _, k := range []string{"regular", "warning", "msg", "user", "rollovers"} {
			dst = bson.AppendInt32(dst, k, 0)
		}
		return dst
	}},
	{"catalogStats", func(n *server.Node) bool {
		return n.Role() != server.Mongos && n.Config().Version.AtLeast(5, 0)
	}, appendCatalogStats},
	{"connections", nil, func(r *server.Request, dst []byte) []byte {
		current, created := r.Node.Connections()
		dst = bsondoc.Append(dst, "current", int32(current), "available", int32(51200-current),
			"totalCreated", created, "active", int32(len(r.Node.CurrentOps(false, false))))
		return r.Node.AppendEstablishment(dst)
	}},
	{"extra_info", nil, func(_ *server.Request, dst []byte) []byte {
		return bson.AppendString(dst, "note", "fields vary by platform")
	}},
	{"globalLock", noMongos, func(r *server.Request, dst []byte) []byte {
		dst = bson.AppendInt64(dst, "totalTime", time.Since(r.Node.Started()).Microseconds())
		dst = threefold(dst, "currentQueue", 0)
		return threefold(dst, "activeClients", int32(len(r.Node.CurrentOps(false, false))))
	}},
	{"locks", noMongos, func(_ *server.Request, dst []byte) []byte { return dst }},
	{"logicalSessionRecordCache", nil, func(r *server.Request, dst []byte) []byte {
		return bson.AppendInt32(dst, "activeSessionsCount",
			int32(len(r.Node.Data().Sessions().All(func(session.ID) bool { return true }))))
	}},
	{"mem", nil, func(r *server.Request, dst []byte) []byte {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return bsondoc.Append(dst, "bits", int32(64), "resident", int32(m.Sys>>20),
			"virtual", int32(max(m.Sys>>20, 1)), "supported", true)
	}},
	{"metrics", nil, func(r *server.Request, dst []byte) []byte { return r.Node.AppendMetrics(dst) }},
	{"network", nil, func(r *server.Request, dst []byte) []byte { return r.Node.AppendNetwork(dst) }},
	{"opcounters", nil, func(r *server.Request, dst []byte) []byte { return r.Node.AppendOpcounters(dst) }},
	{"opcountersRepl", noMongos, func(_ *server.Request, dst []byte) []byte { // members share what they have
		return bsondoc.Append(dst, "insert", int64(0), "query", int64(0), "update", int64(0), "delete", int64(0),
			"getmore", int64(0), "command", int64(0))
	}},
	{"queues", (*server.Node).LimitsConnections, func(r *server.Request, dst []byte) []byte {
		return r.Node.AppendQueues(dst)
	}},
	{"repl", func(n *server.Node) bool { return n.Set() != nil }, func(r *server.Request, dst []byte) []byte {
		dst = r.Node.Set().AppendHello(dst, r.Node, r.Version(), true)
		if !r.Version().Has(release.Command, "setUserWriteBlockMode") {
			return dst
		}
		return appendWriteBlock(r, dst)
	}},
	{"shardingStatistics", (*server.Node).InCluster, func(r *server.Request, dst []byte) []byte {
		return r.Node.AppendShardingStatistics(dst)
	}},
	{"storageEngine", nil, func(r *server.Request, dst []byte) []byte {
		return bsondoc.Append(dst, "name", "wiredTiger", "supportsCommittedReads", true,
			"supportsPendingDrops", true, "supportsSnapshotReadConcern", true, "readOnly", false,
			"persistent", true)
	}},
	{"transactions", nil, func(r *server.Request, dst []byte) []byte {
		open := 0
		for _, s := range r.Node.Data().Sessions().All(func(session.ID) bool { return true }) {
			if s != r.Session && s.Mu.TryLock() {
				if s.State.Phase == session.TxnInProgress {
					open++
				}
				s.Mu.Unlock()
			}
		}
		return bson.AppendInt64(dst, "currentOpen", int64(open))
	}},
}

// catalogKinds are the kinds of collections that serverStatus counts, in its order. A collection
// may be of several.
var catalogKinds = []struct {
	name  string
	since release.Version
	is    func(c *store.Coll, own bool) bool
}{
	{"collections", release.At(5, 0, 0), func(c *store.Coll, own bool) bool {
		return !c.View && !c.TimeSeries && !own
	}},
	{"capped", release.At(5, 0, 0), func(c *store.Coll, own bool) bool { return c.Capped && !own }},
	{"clustered", release.At(5, 3, 0), func(c *store.Coll, own bool) bool { return c.Clustered && !own }},
	{"timeseries", release.At(5, 0, 0), func(c *store.Coll, own bool) bool { return c.TimeSeries && !own }},
	{"queryableEncryption", release.At(7, 0, 0), func(c *store.Coll, own bool) bool {
		return !own && !c.Raw.Lookup("encryptedFields").IsZero()
	}},
	{"views", release.At(5, 0, 0), func(c *store.Coll, own bool) bool { return c.View && !own }},
	// The buckets of a time series collection are one of its own.
	{"internalCollections", release.At(5, 0, 0), func(c *store.Coll, own bool) bool {
		return !c.View && (own || c.TimeSeries)
	}},
	{"internalViews", release.At(5, 0, 0), func(c *store.Coll, own bool) bool { return c.View && own }},
}

// appendCatalogStats counts collections by their kind: those of users, and those which the server
// keeps for itself by their names or databases.
func appendCatalogStats(r *server.Request, dst []byte) []byte {
	n := make([]int32, len(catalogKinds))
	r.Node.Store().Latest().Colls("", func(c *store.Coll) bool {
		own := c.DB == "admin" || c.DB == "config" || c.DB == "local" || strings.HasPrefix(c.Name, "system.")
		for i := range catalogKinds {
			if catalogKinds[i].is(c, own) {
				n[i]++
			}
		}
		return true
	})
	for i := range catalogKinds {
		if k := &catalogKinds[i]; r.Version().AtLeastPatch(k.since) {
			dst = bson.AppendInt32(dst, k.name, n[i])
		}
	}
	return dst
}

func runHostInfo(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckParsed(r, r.Cmd.Name); err != nil {
		return dst, err
	}
	memory, page := server.TotalMemory(), int64(os.Getpagesize())
	cores := int32(runtime.NumCPU())
	system := bsondoc.Of(
		"currentTime", bson.NewDateTime(r.Node.Data().Clock.Now()), "hostname", r.Node.Addr(),
		"cpuAddrSize", int32(64), "memSizeMB", memory>>20, "memLimitMB", memory>>20, "numCores", cores)
	if r.Version().AllParsed() {
		at, more := bson.BeginDocument(nil)
		more = append(more, system.Elements()...)
		more = bsondoc.Append(more, "numCoresAvailableToProcess", int32(runtime.GOMAXPROCS(0)),
			"numPhysicalCores", cores, "numCpuSockets", int32(1), "numNumaNodes", int32(1))
		system = bson.EndDocument(more, at)
	}
	at, all := bson.BeginDocument(nil)
	all = append(all, system.Elements()...)
	all = bsondoc.Append(all, "cpuArch", runtime.GOARCH, "numaEnabled", false)
	system = bson.EndDocument(all, at)
	return bsondoc.Append(dst, "system", system,
		"os", bsondoc.Of("type", runtime.GOOS, "name", "mongotest", "version", runtime.Version()),
		"extra", bsondoc.Of("versionString", runtime.Version(), "pageSize", page, "numPages", memory/page)), nil
}

// getLogArgs are the arguments since version 5.0.
var getLogArgs = &args.Table[args.None]{Name: "getLog", Value: args.String[args.None](nil),
	Fields: map[string]args.Field[args.None]{}}

func runGetLog(r *server.Request, dst []byte) ([]byte, error) {
	since50 := r.Version().AtLeast(5, 0)
	if since50 {
		if err := getLogArgs.ParseCommand(r, nil); err != nil {
			return dst, err
		}
	}
	name, ok := r.Arg().StringValue()
	if !ok {
		v := r.Arg()
		return dst, srverr.New(srverr.TypeMismatch, "Argument to getLog must be of type String; found %s of type %s",
			bsontext.Value(v), bsontext.TypeName(v.Type))
	}
	if name == "*" {
		return bsondoc.AppendStrings(dst, "names", []string{"global", "startupWarnings"}), nil
	}
	if name != "global" && name != "startupWarnings" {
		if since50 {
			return dst, srverr.New(srverr.OperationFailed, "No log named '%s'", name)
		}
		return dst, srverr.New(0, "no RamLog named: %s", name)
	}
	lines, total := r.Node.LogLines(name)
	dst = bsondoc.AppendShortest(dst, "totalLinesWritten", total)
	return bsondoc.AppendStrings(dst, "log", lines), nil
}

func runCmdLineOpts(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckParsed(r, r.Cmd.Name); err != nil {
		return dst, err
	}
	dst = bsondoc.AppendStrings(dst, "argv", []string{"mongod"})
	at, dst := bson.BeginDocumentElement(dst, "parsed")
	return bson.EndDocument(dst, at), nil
}

// logRotateArgs: its value says which log; any number or boolean is all of them.
var logRotateArgs = &args.Table[args.None]{Name: "logRotate", Old: &args.Old{},
	Value: args.Any[args.None](nil).Then(func(_ *args.None, v args.Value) error {
		s, isString := v.StringValue()
		switch {
		case !v.From.Version().AllParsed() || s == "server":
		case isString:
			return srverr.New(srverr.NoSuchKey, "Unknown log type '%s' for logRotate", s)
		case !v.IsNumber() && v.Type != bson.TypeBoolean:
			return args.WrongTypes("logRotate.logRotate", v.Type, "[int, string, decimal, long, bool, double]'")
		}
		return nil
	}), Fields: map[string]args.Field[args.None]{"comment": {}}}

// runLogRotate checks what it is told: there is no file.
func runLogRotate(r *server.Request, dst []byte) ([]byte, error) {
	if !r.Version().AllParsed() {
		return dst, nil
	}
	return dst, logRotateArgs.ParseCommand(r, &args.None{})
}

func runWhatsMyURI(r *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendString(dst, "you", r.Conn.NetConn().RemoteAddr().String()), nil
}

func runConnectionStatus(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckParsed(r, r.Cmd.Name, "showPrivileges"); err != nil {
		return dst, err
	}
	show := r.Body.Lookup("showPrivileges")
	if args.IsNull(show) && r.Version().AllParsed() {
		show = bson.RawValue{}
	}
	if !show.IsZero() && !show.IsNumber() && show.Type != bson.TypeBoolean {
		if r.Version().AllParsed() {
			return dst, args.WrongFlag(r.Version(), r.Cmd.Name, "showPrivileges", show)
		}
		return dst, srverr.New(srverr.TypeMismatch,
			"Expected boolean or number type for field \"showPrivileges\", found %s", bsontext.TypeName(show.Type))
	}
	at, dst := bson.BeginDocumentElement(dst, "authInfo")
	list, dst := bson.BeginArrayElement(dst, "authenticatedUsers")
	u := r.Conn.User()
	var roles []account.Role
	if u != nil {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0))
		d = bsondoc.Append(d, "user", u.Name, "db", u.DB)
		dst = bson.EndDocument(d, start)
		roles = u.Roles
	}
	dst = bson.EndDocument(dst, list)
	dst = account.AppendRoles(dst, "authenticatedUserRoles", roles)
	if show.AsBool() {
		_, privileges := r.Node.Data().Accounts().Inherited(roles)
		dst = bsondoc.AppendDocuments(dst, "authenticatedUserPrivileges", account.MergePrivileges(privileges))
	}
	dst = bson.EndDocument(dst, at)
	if r.Version().AllParsed() {
		uuid := r.Conn.UUID()
		dst = bson.AppendBinary(dst, "uuid", bson.BinaryUUID, uuid[:])
	}
	return dst, nil
}

func runTop(r *server.Request, dst []byte) ([]byte, error) {
	at, dst := bson.BeginDocumentElement(dst, "totals")
	dst = bson.AppendString(dst, "note", "all times in microseconds")
	return bson.EndDocument(r.Node.AppendTop(dst), at), nil
}

func runFeatures(r *server.Request, dst []byte) ([]byte, error) {
	id := r.Node.ProcessID()
	return bson.AppendInt32(dst, "oidMachine", int32(id[4])<<16|int32(id[5])<<8|int32(id[6])), nil
}

func runListCommands(r *server.Request, dst []byte) ([]byte, error) {
	at, dst := bson.BeginDocumentElement(dst, "commands")
	for _, c := range server.Commands() {
		if r.Node.Lookup(c.Name) == nil {
			continue
		}
		if !r.Version().AtLeast(5, 0) {
			dst = bsondoc.Append(dst, c.Name, bsondoc.Of(
				"requiresAuth", !c.NoAuth, "slaveOk", c.Where == server.Anywhere, "adminOnly", c.AdminOnly))
			continue
		}
		one, d := bson.BeginDocumentElement(dst, c.Name)
		d = bsondoc.Append(d, "help", c.HelpText(), "requiresAuth", !c.NoAuth, "secondaryOk",
			c.Where == server.Anywhere, "adminOnly", c.AdminOnly)
		d = bsondoc.AppendStrings(d, "apiVersions", strings.Split(c.API.In, ""))
		d = bsondoc.AppendStrings(d, "deprecatedApiVersions", strings.Split(c.API.Deprecated, ""))
		dst = bson.EndDocument(d, one)
	}
	return bson.EndDocument(dst, at), nil
}

func runQueryOptions(r *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendInt32(dst, "options", 254), nil
}

func runOIDTest(r *server.Request, dst []byte) ([]byte, error) {
	id, ok := r.Arg().ObjectID()
	if !ok {
		return dst, srverr.New(0, "not oid")
	}
	return bsondoc.Append(dst, "oid", id, "str", id.Hex()), nil
}

var freeMonitoringArgs = &args.Table[args.None]{Name: "getFreeMonitoringStatus"}

func runFreeMonitoring(r *server.Request, dst []byte) ([]byte, error) {
	if err := freeMonitoringArgs.ParseCommand(r, nil); err != nil {
		return dst, err
	}
	return bsondoc.Append(dst, "state", "undecided", "message", "There is nothing to monitor."), nil
}

var fsyncArgs = &args.Table[args.None]{Name: "fsync", Fields: map[string]args.Field[args.None]{
	"lock":                              args.SafeBool[args.None](nil),
	"fsyncLockAcquisitionTimeoutMillis": args.Int[args.None](nil),
	"forBackup":                         args.SafeBool[args.None](nil),
}}

func runFsync(r *server.Request, dst []byte) ([]byte, error) {
	if r.Version().AllParsed() {
		if err := fsyncArgs.ParseCommand(r, nil); err != nil {
			return dst, err
		}
	}
	if !r.Body.Lookup("lock").AsBool() {
		return bson.AppendInt32(dst, "numFiles", 1), nil
	}
	n := r.Node.FsyncLocks().Add(1)
	dst = bson.AppendString(dst, "info", "now locked against writes, use db.fsyncUnlock() to unlock")
	dst = bson.AppendInt64(dst, "lockCount", n)
	return bson.AppendString(dst, "seeAlso", "http://dochub.mongodb.org/core/fsynccommand"), nil
}

func runFsyncUnlock(r *server.Request, dst []byte) ([]byte, error) {
	for {
		n := r.Node.FsyncLocks().Load()
		if n == 0 {
			if r.Version().AllParsed() {
				return dst, srverr.New(srverr.IllegalOperation, "fsyncUnlock called when not locked")
			}
			return dst, srverr.New(0, "fsyncUnlock called when not locked")
		}
		if r.Node.FsyncLocks().CompareAndSwap(n, n-1) {
			return bsondoc.Append(dst, "info", "fsyncUnlock completed", "lockCount", n-1), nil
		}
	}
}

func runConnPoolStats(r *server.Request, dst []byte) ([]byte, error) {
	for _, k := range []string{"numClientConnections", "numAScopedConnections", "totalInUse", "totalAvailable",
		"totalCreated", "totalRefreshing"} {
		dst = bson.AppendInt32(dst, k, 0)
	}
	for _, k := range []string{"pools", "hosts", "replicaSets"} {
		at, d := bson.BeginDocumentElement(dst, k)
		dst = bson.EndDocument(d, at)
	}
	return dst, nil
}

func runLockInfo(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckParsed(r, r.Cmd.Name, "includeStorageEngineDump"); err != nil {
		return dst, err
	}
	var locks [][]byte
	if r.Node.FsyncLocks().Load() > 0 { // the one lock that outlives its command
		granted := bsondoc.Of("mode", "S", "convertMode", "NONE", "enqueueAtFront", false, "compatibleFirst", true)
		locks = append(locks, bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("resourceId", "{2305843009213693953: Global, 1}")
			d.B = bsondoc.AppendDocuments(d.B, "granted", [][]byte{granted})
			d.B = bsondoc.AppendDocuments(d.B, "pending", nil)
		}))
	}
	return bsondoc.AppendDocuments(dst, "lockInfo", locks), nil
}

// lastLTS returns the series before a version that is supported for long, as those with a zero are
// since 5.0: the one to which a version may also be set back.
func lastLTS(v release.Version) string {
	if v.Minor > 0 {
		return release.At(v.Major, 0, 0).Series()
	}
	return release.At(v.Major-1, 0, 0).Series()
}

// fcvArgs are the arguments beside the version.
var fcvArgs = &args.Table[args.None]{Name: "setFeatureCompatibilityVersion",
	Fields: map[string]args.Field[args.None]{
		"confirm":                args.SafeBool[args.None](nil),
		"downgradeOnDiskChanges": args.SafeBool[args.None](nil),
		"fromConfigServer":       args.SafeBool[args.None](nil),
	}}

func runSetFCV(r *server.Request, dst []byte) ([]byte, error) {
	v := r.Version()
	tail := func() string {
		return bsontext.Document(r.Body) + ". See https://docs.mongodb.com/master/release-notes/" + v.Series() +
			"-compatibility/#feature-compatibility."
	}
	s, ok := r.Arg().StringValue()
	if v.AllParsed() {
		if err := fcvArgs.ParseCommand(r, nil); err != nil {
			return dst, err
		}
	}
	if v.AllParsed() && args.IsNull(r.Arg()) {
		return dst, args.MissingField("setFeatureCompatibilityVersion.setFeatureCompatibilityVersion")
	}
	if !ok {
		return dst, srverr.New(srverr.TypeMismatch,
			"Command argument must be of type String, but was of type %s in: %s", bsontext.TypeName(r.Arg().Type),
			tail())
	}
	first := true
	for k := range r.Body.All() {
		if !first && !r.Generic(k) && (k != "confirm" || !r.Node.Version().Has(release.Argument,
			"setFeatureCompatibilityVersion.confirm")) && k != "downgradeOnDiskChanges" && k != "fromConfigServer" {
			return dst, srverr.New(srverr.InvalidOptions, "Unrecognized field found %s in %s", k, tail())
		}
		first = false
	}
	if before := previousSeries(v); s != v.Series() && s != before && (!v.AtLeast(6, 0) || s != lastLTS(v)) {
		code := int32(srverr.BadValue)
		if v.AllParsed() {
			code = 4926900
		}
		return dst, srverr.New(code, "Invalid command argument. Expected '%s' or '%s', found %s in: %s",
			v.Series(), before, s, tail())
	}
	if confirms := r.Node.Version().Has(release.Argument, "setFeatureCompatibilityVersion.confirm"); confirms &&
		!r.Body.Lookup("confirm").AsBool() {
		const again = "Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV "
		if s == v.Series() {
			return dst, srverr.New(
				7369100, "Once you have upgraded to %s, you will not be able to downgrade FCV and binary version without support assistance. %supgrade.", s, again)
		}
		return dst, srverr.New(
			7369100, "Once you have downgraded the FCV, if you choose to downgrade the binary version, it will require support assistance. %sdowngrade.", again)
	}
	r.Node.Data().SetCompatibility(s)
	r.NoteChange()
	return dst, nil
}

func previousSeries(v release.Version) string {
	before := ""
	for _, rel := range release.Releases {
		if rel.Major == v.Major && rel.Minor == v.Minor {
			break
		}
		before = release.At(rel.Major, rel.Minor, 0).Series()
	}
	return strings.TrimSpace(before)
}
