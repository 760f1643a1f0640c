// Package golden holds commands and a real server's replies: it replays such recordings against a
// deployment, says where the replies differ, and records new ones from any server that it can
// reach.
//
// A recording is a JSON array of cases in canonical Extended JSON. Every case starts from empty
// databases "golden" and "golden2". See mongotest/testdata/golden/README.md for the fields of a
// step.
package golden

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"allium/bson"
)

// Case is a scripted conversation with what a real server answered.
type Case struct {
	Name       string
	Topologies []string
	Note       string
	Steps      []Step
	Cleanup    []Step // run at the end whatever happened; replies are not looked at
	raw        bson.Raw
}

// Step is one command on one connection.
type Step struct {
	Command    bson.Raw
	On         string   // primary (default), secondary, mongos1, mongos2
	Conn       string   // the connection's name; steps with one name and target share a socket
	Save       bson.Raw // name -> dotted path in the reply, for {"$ref": name}
	Ignore     []string // dotted paths that a recording replaces by {"$any": type}
	Sorted     []string // dotted paths of arrays that have no order of their own
	Quiet      bool     // set-up: the reply is neither recorded nor compared
	Background bool     // the reply is read when the connection is used next, or at the end
	SleepMS    int64
	Sequences  bson.Raw // name -> documents, sent as document sequences
	Flags      int64    // OP_MSG flags
	Query      bool     // sent as OP_QUERY
	MinMS      int64    // bounds on the time until the reply
	MaxMS      int64
	Until      string // the command is repeated until this path is not empty
	Closed     bool   // the server closes the connection instead of answering
	Reply      bson.Raw
	raw        bson.Raw
}

// Load reads a file of cases, compressed by gzip if its name ends in ".gz".
func Load(path string) ([]Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if data, err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	cases := make([]Case, len(parts))
	for i, p := range parts {
		var raw bson.Raw
		if err := bson.UnmarshalExtJSON(p, &raw); err != nil {
			return nil, fmt.Errorf("%s: case %d: %w", path, i, err)
		}
		if cases[i], err = readCase(raw); err != nil {
			return nil, fmt.Errorf("%s: case %d: %w", path, i, err)
		}
	}
	return cases, nil
}

// Save writes a file of cases, one per line. Their recorded replies are those in the steps.
func Save(path string, cases []Case) error {
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, c := range cases {
		j, err := bson.MarshalExtJSON(c.document(), true)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(j)
	}
	b.WriteString("\n]\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func readCase(raw bson.Raw) (Case, error) {
	c := Case{raw: raw}
	for k, v := range raw.All() {
		switch k {
		case "name":
			c.Name, _ = v.StringValue()
		case "note":
			c.Note, _ = v.StringValue()
		case "topologies":
			c.Topologies = stringList(v)
		case "steps", "cleanup":
			var steps []Step
			for e := range bson.Raw(v.Value).Values() {
				s, err := readStep(e.Value)
				if err != nil {
					return c, fmt.Errorf("%q: %w", c.Name, err)
				}
				steps = append(steps, s)
			}
			if k == "steps" {
				c.Steps = steps
			} else {
				c.Cleanup = steps
			}
		default:
			return c, fmt.Errorf("case has unknown field %q", k)
		}
	}
	return c, nil
}

func readStep(raw bson.Raw) (Step, error) {
	s := Step{raw: raw}
	for k, v := range raw.All() {
		text, _ := v.StringValue()
		num, _ := v.AsInt64()
		switch k {
		case "command":
			s.Command = v.Value
		case "on":
			s.On = text
		case "conn":
			s.Conn = text
		case "save":
			s.Save = v.Value
		case "ignore":
			s.Ignore = stringList(v)
		case "sorted":
			s.Sorted = stringList(v)
		case "quiet":
			s.Quiet = v.AsBool()
		case "background":
			s.Background = v.AsBool()
		case "sleepMS":
			s.SleepMS = num
		case "sequences":
			s.Sequences = v.Value
		case "flags":
			s.Flags = num
		case "op":
			s.Query = text == "query"
		case "minMS":
			s.MinMS = num
		case "maxMS":
			s.MaxMS = num
		case "until":
			s.Until = text
		case "closed":
			s.Closed = v.AsBool()
		case "reply":
			s.Reply = v.Value
		default:
			return s, fmt.Errorf("step has unknown field %q", k)
		}
	}
	return s, nil
}

// document returns the case with the replies that its steps now have.
func (c Case) document() bson.Raw {
	at, dst := bson.BeginDocument(nil)
	for k, v := range c.raw.All() {
		switch k {
		case "topologies":
		case "steps":
			at, d := bson.BeginArrayElement(dst, "steps")
			for i, s := range c.Steps {
				d = append(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i), s.document()...)
			}
			dst = bson.EndDocument(d, at)
		default:
			dst = bson.AppendRawValue(dst, k, v)
		}
	}
	if len(c.Topologies) > 0 {
		at, d := bson.BeginArrayElement(dst, "topologies")
		for i, t := range c.Topologies {
			d = bson.AppendStringValue(bson.AppendIndexHeader(d, bson.TypeString, i), t)
		}
		dst = bson.EndDocument(d, at)
	}
	return bson.EndDocument(dst, at)
}

func (s Step) document() bson.Raw {
	at, dst := bson.BeginDocument(nil)
	for k, v := range s.raw.All() {
		if k != "reply" {
			dst = bson.AppendRawValue(dst, k, v)
		}
	}
	if s.Reply != nil {
		dst = bson.AppendDocument(dst, "reply", s.Reply)
	}
	return bson.EndDocument(dst, at)
}

func stringList(v bson.RawValue) []string {
	var list []string
	for e := range bson.Raw(v.Value).Values() {
		s, _ := e.StringValue()
		list = append(list, s)
	}
	return list
}
