package serverlog

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestHandler(t *testing.T) {
	var b bytes.Buffer
	l := slog.New(New(&b))
	r := slog.NewRecord(time.Date(2024, 5, 1, 15, 16, 17, 180e6, time.UTC), slog.LevelWarn, "a <b>", 0)
	r.AddAttrs(slog.String(Component, "NETWORK"), slog.Duration("took", 1500*time.Microsecond), slog.Int("n", 7), slog.String("s", "x\ny"))
	if err := l.With("conn", true).Handler().Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	const want = `{"t":{"$date":"2024-05-01T15:16:17.180+00:00"},"s":"W","c":"NETWORK","id":0,"ctx":"main","msg":"a <b>","attr":{"conn":true,"n":7,"s":"x\ny","tookMillis":1.5}}` + "\n"
	if b.String() != want {
		t.Errorf("got  %swant %s", &b, want)
	}
	b.Reset()
	l.Debug("no")
	l.WithGroup("g").Error("yes", "a", 1)
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["s"] != "E" || strings.Count(b.String(), "\n") != 1 || !strings.Contains(b.String(), `"g.a":1`) {
		t.Errorf("%s, %v", &b, err)
	}
}
