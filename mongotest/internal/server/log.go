package server

import (
	"context"
	"log/slog"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
)

// maxLogged is how much of a command's text a log line has.
const maxLogged = 1000

// shown returns a command as others may see it: without a body that has credentials.
func shown(body bson.Raw) bson.Raw {
	if wire.Sensitive(body) {
		return bsondoc.OrEmpty(nil)
	}
	return body
}

// log logs the command and how it ended.
func (r *Request) log(reply bson.Raw) {
	attrs := []slog.Attr{
		slog.String("node", r.Node.addr), slog.Int("conn", int(r.Conn.id)), slog.String("db", r.DB),
		slog.String("command", r.Name),
		slog.Duration("took", time.Since(r.start)),
	}
	if !wire.Sensitive(r.Body) {
		text := bsontext.Document(r.Body)
		if len(text) > maxLogged {
			text = text[:maxLogged] + "..."
		}
		attrs = append(attrs, slog.String("body", text))
	}
	for _, s := range r.Sequences {
		attrs = append(attrs, slog.Int(s.ID, len(s.Docs)))
	}
	if msg, ok := reply.Lookup("errmsg").StringValue(); ok {
		attrs = append(attrs, slog.String("error", msg))
	}
	r.Node.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "command", attrs...)
}
