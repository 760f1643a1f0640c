// Package shell runs initialization scripts: JavaScript with the part of mongosh's API that such
// scripts use, on the interpreter of package js.
//
//	s := shell.New(shell.Config{DB: "app", Run: run})
//	err := s.Run("01-users.js", source)
//
// A Session is a run of mongosh: its global variables live as long as it does. What a script does
// is done by commands, which Config.Run runs.
package shell

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/js"
	"allium/mongotest/internal/srverr"
)

// Config is what a session has of its surroundings.
type Config struct {
	DB string // the database that db stands for
	// Run runs a command and returns the reply, also of one that failed.
	Run func(db string, cmd bson.Raw) bson.Raw
	// Auth reports whether a user of the database has this password.
	Auth func(db, user, password string) bool
	// Print gets a line of what the script prints.
	Print func(line string)
	// Read returns a file that the script loads.
	Read func(path string) (string, error)
	// Env are the variables of the environment that the script sees.
	Env map[string]string
	// Version is that of the server.
	Version string
	// Check returns the error that ends the script, nil to go on; nil: nothing ends it.
	Check func() error
}

//go:embed shell.js
var prelude string

// Session is a run of the shell. It is used by one goroutine at a time.
type Session struct{ e *js.Engine }

// exit is the error by which a script ends itself.
type exit struct{ code int64 }

func (e *exit) Error() string { return fmt.Sprintf("the script ended with the status %d", e.code) }

// New returns a session.
func New(cfg Config) *Session {
	env := bson.D{}
	for name, value := range cfg.Env {
		env = append(env, bson.E{Key: name, Value: value})
	}
	host := map[string]js.Native{
		"run": func(args []bson.RawValue) (any, error) {
			db, err := textOf(args, 0)
			if err != nil {
				return nil, err
			}
			cmd, ok := argument(args, 1).Document()
			if !ok || cmd.IsEmpty() {
				return nil, fmt.Errorf("want a command, and not %s", argument(args, 1))
			}
			return cfg.Run(db, cmd), nil
		},
		"auth": func(args []bson.RawValue) (any, error) {
			var t [3]string
			for i := range t {
				t[i], _ = textOf(args, i)
			}
			return cfg.Auth(t[0], t[1], t[2]), nil
		},
		"print": func(args []bson.RawValue) (any, error) {
			line, _ := textOf(args, 0)
			cfg.Print(line)
			return nil, nil
		},
		"read": func(args []bson.RawValue) (any, error) {
			path, err := textOf(args, 0)
			if err != nil {
				return nil, err
			}
			return cfg.Read(path)
		},
		"env": func([]bson.RawValue) (any, error) { return env, nil },
		"exit": func(args []bson.RawValue) (any, error) {
			code, _ := argument(args, 0).AsInt64()
			return nil, &exit{code}
		},
		"parse": func(args []bson.RawValue) (any, error) {
			text, err := textOf(args, 0)
			if err != nil {
				return nil, err
			}
			return bson.ParseExtJSONValue([]byte(text))
		},
		"stringify": func(args []bson.RawValue) (any, error) {
			indent, _ := textOf(args, 2)
			text, err := bson.AppendExtJSONValue(nil, argument(args, 0), !argument(args, 1).AsBool())
			if err != nil || indent == "" {
				return string(text), err
			}
			return indented(text, indent)
		},
	}
	return &Session{js.New(js.Config{Check: cfg.Check, ServerVersion: cfg.Version,
		Shell: &js.Shell{Prelude: prelude, Host: host, First: cfg.DB}})}
}

func argument(args []bson.RawValue, i int) bson.RawValue {
	if i < len(args) {
		return args[i]
	}
	return bson.RawValue{Type: bson.TypeNull}
}

func textOf(args []bson.RawValue, i int) (string, error) {
	s, ok := argument(args, i).StringValue()
	if !ok {
		return "", fmt.Errorf("want a text, and not %s", argument(args, i))
	}
	return s, nil
}

// Error is why a script did not come to its end, and where.
type Error struct {
	File         string
	Line, Column int // from 1; 0: not known
	Err          error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Run runs a script. Its errors are *Error.
func (s *Session) Run(name, source string) error {
	place, err := s.e.RunProgram(name, source)
	if err == nil {
		return nil
	}
	if ended, ok := errors.AsType[*exit](err); ok {
		if ended.code == 0 {
			return nil
		}
		return &Error{File: name, Err: ended}
	}
	if e, ok := errors.AsType[*srverr.Error](err); ok {
		text, _, _ := strings.Cut(e.Msg, " :\n")
		err = errors.New(strings.TrimPrefix(text, "uncaught exception: "))
	}
	if place.File == "" {
		place.File = name
	}
	return &Error{File: place.File, Line: place.Line, Column: place.Column, Err: err}
}
