// Package logging writes the driver's log messages to log/slog (specification: Logging): a level
// for each component, set by the program or by environment variables, and nothing computed for a
// message that nobody reads.
package logging

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Component is a part of the driver whose messages have a level of their own.
type Component uint8

// The components that the specification names.
const (
	Command Component = iota
	Topology
	ServerSelection
	Connection
	components
)

var componentNames = [components]string{"command", "topology", "serverSelection", "connection"}

var componentVariables = [components]string{
	"MONGODB_LOG_COMMAND", "MONGODB_LOG_TOPOLOGY", "MONGODB_LOG_SERVER_SELECTION", "MONGODB_LOG_CONNECTION",
}

// String returns the specification's name of the component, for example "serverSelection".
func (c Component) String() string { return componentNames[c] }

// The levels of the specification that log/slog has no name for.
const (
	LevelTrace     = slog.Level(-8)
	LevelNotice    = slog.Level(2)
	LevelCritical  = slog.Level(12)
	LevelAlert     = slog.Level(16)
	LevelEmergency = slog.Level(20)
	LevelOff       = slog.Level(math.MaxInt32)
)

var levelNames = map[string]slog.Level{
	"off": LevelOff, "emergency": LevelEmergency, "alert": LevelAlert, "critical": LevelCritical,
	"error": slog.LevelError, "warn": slog.LevelWarn, "notice": LevelNotice, "info": slog.LevelInfo,
	"debug": slog.LevelDebug, "trace": LevelTrace,
}

// ParseLevel reads the name of a level, for example "debug"; upper and lower case do not matter.
func ParseLevel(s string) (slog.Level, bool) {
	level, ok := levelNames[strings.ToLower(s)]
	return level, ok
}

// DefaultMaxDocumentLength is how much of a document's Extended JSON a message holds, in bytes.
const DefaultMaxDocumentLength = 1000

// Options are what a program sets; they win over the environment.
type Options struct {
	// Handler takes the messages. Nil: they go where MONGODB_LOG_PATH says, to standard error by
	// default.
	Handler slog.Handler
	// Levels are the least severe levels to log, by component. A component that is not named has
	// the level that its environment variable or MONGODB_LOG_ALL sets; if neither is set, it logs
	// what Handler is enabled for, or nothing if Handler is nil.
	Levels map[Component]slog.Level
	// MaxDocumentLength is how much of a document's Extended JSON a message holds, in bytes. Zero:
	// what MONGODB_LOG_MAX_DOCUMENT_LENGTH says, DefaultMaxDocumentLength by default.
	MaxDocumentLength int
}

// Logger writes messages. A nil Logger writes none. It is safe for concurrent use.
type Logger struct {
	handler slog.Handler
	levels  [components]slog.Level
	maxDoc  int
	file    io.Closer
}

// New returns the logger for options and environment variables, which getenv returns ("" if a
// variable is not set). It returns nil if nothing is to be logged. The warnings tell of variables
// that are ignored because of their values.
func New(o Options, getenv func(string) string) (l *Logger, warnings []string) {
	l = &Logger{handler: o.Handler, maxDoc: o.MaxDocumentLength}
	level := func(name string) (slog.Level, bool) {
		s := getenv(name)
		level, ok := ParseLevel(s)
		if s != "" && !ok {
			warnings = append(warnings, name+" is not the name of a level: "+strconv.Quote(s))
		}
		return level, ok
	}
	all, ok := level("MONGODB_LOG_ALL")
	if !ok {
		all = LevelOff
		if o.Handler != nil {
			all = slog.Level(math.MinInt32)
		}
	}
	silent := true
	for c := range l.levels {
		l.levels[c] = all
		if v, ok := level(componentVariables[c]); ok {
			l.levels[c] = v
		}
		if v, ok := o.Levels[Component(c)]; ok {
			l.levels[c] = v
		}
		silent = silent && l.levels[c] == LevelOff
	}
	if silent {
		return nil, warnings
	}
	if l.maxDoc <= 0 {
		l.maxDoc = DefaultMaxDocumentLength
		if s := getenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH"); s != "" {
			if n, err := strconv.Atoi(s); err == nil && n >= 0 {
				l.maxDoc = n
			} else {
				warnings = append(warnings, "MONGODB_LOG_MAX_DOCUMENT_LENGTH is not a length: "+strconv.Quote(s))
			}
		}
	}
	if l.handler == nil {
		var w io.Writer = os.Stderr
		switch path := getenv("MONGODB_LOG_PATH"); {
		case path == "" || strings.EqualFold(path, "stderr"):
		case strings.EqualFold(path, "stdout"):
			w = os.Stdout
		default:
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				warnings = append(warnings, "MONGODB_LOG_PATH cannot be used, logging to standard error: "+err.Error())
			} else {
				w, l.file = f, f
			}
		}
		l.handler = slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.Level(math.MinInt32)})
	}
	return l, warnings
}

// Close closes the file that MONGODB_LOG_PATH named, if there is one.
func (l *Logger) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Enabled reports whether a message would be written. Ask before computing anything for it.
func (l *Logger) Enabled(ctx context.Context, c Component, level slog.Level) bool {
	return l != nil && level >= l.levels[c] && l.handler.Enabled(ctx, level)
}

// Log writes a message. The caller has asked Enabled.
func (l *Logger) Log(ctx context.Context, c Component, level slog.Level, message string, attrs ...slog.Attr) {
	r := slog.NewRecord(time.Now(), level, message, 0)
	r.AddAttrs(slog.String("component", c.String()))
	r.AddAttrs(attrs...)
	l.handler.Handle(ctx, r) // whatever a handler fails at, the operation must go on
}

// truncate cuts a document's Extended JSON to n bytes and marks that with an ellipsis.
func truncate(json string, n int) string {
	if len(json) <= n {
		return json
	}
	for n > 0 && !utf8.RuneStart(json[n]) {
		n--
	}
	return json[:n] + "..."
}

// Server appends the fields that name a server: serverHost, and serverPort unless addr is the path
// of a Unix domain socket.
func Server(attrs []slog.Attr, addr string) []slog.Attr {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return append(attrs, slog.String("serverHost", addr))
	}
	n, _ := strconv.Atoi(port)
	return append(attrs, slog.String("serverHost", host), slog.Int("serverPort", n))
}

// Millis returns a duration as the specifications have it in messages, in milliseconds.
func Millis(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d)/float64(time.Millisecond))
}
