package admin

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, c := range []*server.Command{
		{Name: "startSession", Help: "start a logical session", Needs: server.Free, Run: runStartSession},
		{Name: "endSessions", Help: "end a set of logical sessions", Needs: server.Free, API: server.V1, DataLake: true,
			Run: runEndSessions},
		{Name: "refreshSessions", Help: "renew a set of logical sessions", Needs: server.Free, API: server.V1,
			Run: runRefreshSessions},
		{Name: "killSessions", Help: "kill a logical session and its operations", Needs: server.Free,
			Run: runKillSessions},
		{Name: "killAllSessions", Needs: server.OnCluster("killAnySession"), Run: runKillAllSessions},
		{Name: "killAllSessionsByPattern", Needs: server.OnCluster("killAnySession"), Run: runKillByPattern},
	} {
		c.Where = server.Anywhere
		server.Register(c)
	}
}

func runStartSession(r *server.Request, dst []byte) ([]byte, error) {
	id := session.NewID()
	if _, err := r.UseSession(id); err != nil {
		return dst, err
	}
	at, dst := bson.BeginDocumentElement(dst, "id")
	dst = bson.AppendBinary(dst, "id", bson.BinaryUUID, id.ID[:])
	dst = bson.EndDocument(dst, at)
	return bson.AppendInt32(dst, "timeoutMinutes", int32(session.Timeout/time.Minute)), nil
}

// argDocuments returns the documents of the command's array, which errors call list, or the
// server's error for anything else.
func argDocuments(r *server.Request, parser, list string) ([]bson.Raw, error) {
	v := args.Value{RawValue: r.Arg(), From: r}
	if v.Type != bson.TypeArray {
		list = r.Cmd.Name
	}
	if args.IsNull(v.RawValue) && r.Version().AllParsed() {
		return nil, args.MissingField(parser + "." + list)
	}
	if err := args.CheckDocuments(r, parser, list, v.RawValue); err != nil {
		return nil, err
	}
	return v.Documents(), nil
}

// sessionIDs returns the sessions that the command names. Errors call the command by the name of
// its parser, and since version 5.0 may have a name of their own for the list.
func sessionIDs(r *server.Request, parser, list string) ([]session.ID, error) {
	if !r.Version().AtLeast(5, 0) || list == "" {
		list = r.Cmd.Name
	} else {
		parser = r.Cmd.Name
		if err := args.CheckFields(r, parser); err != nil {
			return nil, err
		}
	}
	docs, err := argDocuments(r, parser, list)
	if err != nil {
		return nil, err
	}
	ids := make([]session.ID, len(docs))
	for i, d := range docs {
		if ids[i], err = session.ParseID(r.Version(), d, parser+"."+list, false); err != nil {
			return nil, err
		}
		ids[i] = r.OwnSession(ids[i])
	}
	return ids, nil
}

// runEndSessions only marks the sessions as ended: they go when the server next looks through its
// sessions.
func runEndSessions(r *server.Request, dst []byte) ([]byte, error) {
	ids, err := sessionIDs(r, "EndSessionsCmdFromClient", "endSessions")
	if err == nil {
		r.Node.Data().EndSessions(ids)
	}
	return dst, err
}

func runRefreshSessions(r *server.Request, dst []byte) ([]byte, error) {
	ids, err := sessionIDs(r, "RefreshSessionsCmdFromClient", "refreshSessionsFromClient")
	if err != nil {
		return dst, err
	}
	for _, id := range ids {
		if _, err := r.UseSession(id); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func runKillSessions(r *server.Request, dst []byte) ([]byte, error) {
	ids, err := sessionIDs(r, "KillSessionsCmd", "")
	if err != nil {
		return dst, err
	}
	kill := map[session.ID]bool{}
	for _, id := range ids {
		kill[id] = true
	}
	r.KillSessions(func(id session.ID) bool { return kill[id] || len(ids) == 0 && r.OwnSessions(id) })
	return dst, nil
}

// killedUser is a user whose sessions end.
type killedUser struct{ user, db string }

var killedUserArgs = &args.Table[killedUser]{Name: "KillAllSessionsCmd.killAllSessions",
	Required: []string{"user", "db"}, Fields: map[string]args.Field[killedUser]{
		"user": args.String(func(u *killedUser) *string { return &u.user }),
		"db":   args.String(func(u *killedUser) *string { return &u.db }),
	}}

func runKillAllSessions(r *server.Request, dst []byte) ([]byte, error) {
	docs, err := argDocuments(r, "KillAllSessionsCmd", r.Cmd.Name)
	if err != nil {
		return dst, err
	}
	users := map[[32]byte]bool{}
	for _, d := range docs {
		var u killedUser
		if err := killedUserArgs.Parse(r, d, &u); err != nil {
			return dst, err
		}
		if !r.Node.Version().AtLeast(5, 0) && !r.Node.HasUser(u.db, u.user) { // later versions do not look
			return dst, srverr.New(srverr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", u.user, u.db)
		}
		users[server.UserDigest(u.user, u.db)] = true
	}
	r.KillSessions(func(id session.ID) bool { return users[id.UID] || len(docs) == 0 })
	return dst, nil
}

// killPattern says which sessions end.
type killPattern struct {
	ids     map[session.ID]bool
	users   map[[32]byte]bool
	all     bool // a pattern names neither
	named   bool // the one that is being read does
	asUsers []bson.Raw
	asRoles []bson.Raw
}

const killPatternName = "KillAllSessionsByPatternCmd.killAllSessionsByPattern"

// A pattern may also say as whom sessions end, which matters to an audit only.
var (
	killAsUserArgs = &args.Table[args.None]{Name: killPatternName + ".users", Required: []string{"user", "db"},
		Fields: map[string]args.Field[args.None]{
			"user": args.String[args.None](nil), "db": args.String[args.None](nil),
		}}
	killAsRoleArgs = &args.Table[args.None]{Name: killPatternName + ".roles", Required: []string{"role", "db"},
		Fields: map[string]args.Field[args.None]{
			"role": args.String[args.None](nil), "db": args.String[args.None](nil),
		}}
)

var killPatternArgs = &args.Table[killPattern]{Name: killPatternName, Fields: map[string]args.Field[killPattern]{
	"lsid": args.Any[killPattern](nil).Then(func(p *killPattern, v args.Value) error {
		if v.Type != bson.TypeEmbeddedDocument && v.From.Version().AtLeast(5, 0) {
			return args.WrongType(killPatternName+"."+v.Name, v.Type, "object")
		}
		id, err := session.ParseID(v.From.Version(), v.Value,
			"KillAllSessionsByPatternCmd.killAllSessionsByPattern."+v.Name, true)
		p.ids[id], p.named = true, true
		return err
	}),
	"uid": args.Any[killPattern](nil).Then(func(p *killPattern, v args.Value) error {
		b, err := session.BinaryField(v.From.Version(), v.RawValue,
			"KillAllSessionsByPatternCmd.killAllSessionsByPattern."+v.Name, bson.BinaryGeneric)
		if err != nil {
			return err
		}
		digest, err := session.Digest(b)
		p.users[digest], p.named = true, true
		return err
	}),
	"users": args.Objects(func(p *killPattern) *[]bson.Raw { return &p.asUsers }).Must(),
	"roles": args.Objects(func(p *killPattern) *[]bson.Raw { return &p.asRoles }).Must(),
}}

func runKillByPattern(r *server.Request, dst []byte) ([]byte, error) {
	docs, err := argDocuments(r, "KillAllSessionsByPatternCmd", r.Cmd.Name)
	if err != nil {
		return dst, err
	}
	p := killPattern{ids: map[session.ID]bool{}, users: map[[32]byte]bool{}, all: len(docs) == 0}
	for _, d := range docs {
		p.named, p.asUsers, p.asRoles = false, nil, nil
		if err := killPatternArgs.Parse(r, d, &p); err != nil {
			return dst, err
		}
		for _, user := range p.asUsers {
			if err := killAsUserArgs.Parse(r, user, &args.None{}); err != nil {
				return dst, err
			}
		}
		for _, role := range p.asRoles {
			if err := killAsRoleArgs.Parse(r, role, &args.None{}); err != nil {
				return dst, err
			}
		}
		p.all = p.all || !p.named
	}
	r.KillSessions(func(id session.ID) bool { return p.all || p.ids[id] || p.users[id.UID] })
	return dst, nil
}
