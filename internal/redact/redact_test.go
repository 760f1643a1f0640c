package redact

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string
	On   *bool
}

type shy struct{ Secret string }

func (s shy) Format(f fmt.State, _ rune) { fmt.Fprint(f, Mask(s.Secret)) }

type outer struct {
	Text   string
	List   []string
	Wait   *time.Duration
	Inner  *inner
	Empty  *inner
	Shy    *shy
	TLS    *tls.Config
	Call   func()
	Any    any
	hidden string
}

func TestFields(t *testing.T) {
	wait, on := time.Second, true
	full := outer{
		Text: "x", List: []string{"a", "b"}, Wait: &wait, Inner: &inner{Name: "n", On: &on}, Shy: &shy{"password"},
		TLS: &tls.Config{ServerName: "password"}, Call: func() {}, Any: shy{"password"}, hidden: "password",
	}
	for _, tt := range []struct {
		print func(*strings.Builder)
		want  string
	}{
		{func(b *strings.Builder) { Fields(b, full) },
			"{Text:x List:[a b] Wait:1s Inner:{Name:n On:true} Empty:<nil> Shy:*** TLS:set Call:set Any:***}"},
		{func(b *strings.Builder) { Fields(b, inner{}) }, "{Name: On:<nil>}"},
		{func(b *strings.Builder) { SetFields(b, outer{Text: full.hidden[:1], Inner: &inner{On: &on}}) }, "{Text:p Inner:{On:true}}"},
		{func(b *strings.Builder) { SetFields(b, outer{}) }, "{}"},
	} {
		var b strings.Builder
		tt.print(&b)
		if b.String() != tt.want {
			t.Errorf("got  %s\nwant %s", b.String(), tt.want)
		}
	}
}
