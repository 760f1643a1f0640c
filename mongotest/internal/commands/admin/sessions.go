package admin

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, c := range []*server.Command{
		{Name: "startSession", Help: "start a logical session", Needs: server.Free, Run: runStartSession},
		{Name: "endSessions", Help: "end a set of logical sessions", Needs: server.Free, API: server.V1, DataLake: true, Run: runEndSessions},
		{Name: "refreshSessions", Help: "renew a set of logical sessions", Needs: server.Free, API: server.V1, Run: runRefreshSessions},
		{Name: "killSessions", Help: "kill a logical session and its operations", Needs: server.Free, Run: runKillSessions},
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

// argDocuments returns the documents of the command's array, or the server's error for anything
// else.
func argDocuments(r *server.Request, parser string) ([]bson.Raw, error) {
	if _, err := idl.Objects.Check(r, parser, r.Cmd.Name, r.Arg()); err != nil {
		return nil, err
	}
	return idl.Documents(r, "", r.Arg()), nil
}

func sessionIDs(r *server.Request, parser string) ([]session.ID, error) {
	docs, err := argDocuments(r, parser)
	if err != nil {
		return nil, err
	}
	ids := make([]session.ID, len(docs))
	for i, d := range docs {
		if ids[i], err = session.ParseID(d, parser+"."+r.Cmd.Name, false); err != nil {
			return nil, err
		}
		ids[i] = r.OwnSession(ids[i])
	}
	return ids, nil
}

// runEndSessions only marks the sessions as ended: they go when the server next looks through its
// sessions.
func runEndSessions(r *server.Request, dst []byte) ([]byte, error) {
	ids, err := sessionIDs(r, "EndSessionsCmdFromClient")
	if err == nil {
		r.Node.Data().EndSessions(ids)
	}
	return dst, err
}

func runRefreshSessions(r *server.Request, dst []byte) ([]byte, error) {
	ids, err := sessionIDs(r, "RefreshSessionsCmdFromClient")
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
	ids, err := sessionIDs(r, "KillSessionsCmd")
	if err != nil {
		return dst, err
	}
	kill := map[session.ID]bool{}
	for _, id := range ids {
		kill[id] = true
	}
	r.KillSessions(func(id session.ID) bool { return kill[id] || len(ids) == 0 })
	return dst, nil
}

func runKillAllSessions(r *server.Request, dst []byte) ([]byte, error) {
	const parser = "KillAllSessionsCmd"
	docs, err := argDocuments(r, parser)
	if err != nil {
		return dst, err
	}
	for _, d := range docs {
		var user, db string
		var hasUser, hasDB bool
		for k, v := range d.All() {
			s, ok := v.StringValue()
			switch k {
			case "user":
				user, hasUser = s, true
			case "db":
				db, hasDB = s, true
			default:
				return dst, arg.UnknownField(parser + ".killAllSessions." + k)
			}
			if !ok {
				return dst, arg.WrongType(parser+".killAllSessions."+k, v.Type, "string")
			}
		}
		switch {
		case !hasUser:
			return dst, arg.MissingField(parser + ".killAllSessions.user")
		case !hasDB:
			return dst, arg.MissingField(parser + ".killAllSessions.db")
		}
		if !r.Node.HasUser(db, user) {
			return dst, srverr.New(srverr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", user, db)
		}
	}
	r.KillSessions(func(id session.ID) bool { return true })
	return dst, nil
}

func runKillByPattern(r *server.Request, dst []byte) ([]byte, error) {
	const parser = "KillAllSessionsByPatternCmd"
	docs, err := argDocuments(r, parser)
	if err != nil {
		return dst, err
	}
	kill := map[session.ID]bool{}
	users := map[[32]byte]bool{}
	for _, d := range docs {
		for k, v := range d.All() {
			field := parser + ".killAllSessionsByPattern." + k
			switch k {
			case "lsid":
				id, err := session.ParseID(v.Value, field, true)
				if err != nil {
					return dst, err
				}
				kill[id] = true
			case "uid":
				b, err := session.BinaryField(v, field, bson.BinaryGeneric)
				if err != nil {
					return dst, err
				}
				users[[32]byte(append(b, make([]byte, 32)...))] = true
			case "users", "roles":
				if v.Type != bson.TypeArray {
					return dst, arg.WrongType(field, v.Type, "array")
				}
			default:
				return dst, arg.UnknownField(field)
			}
		}
	}
	r.KillSessions(func(id session.ID) bool { return kill[id] || users[id.UID] || len(docs) == 0 })
	return dst, nil
}
