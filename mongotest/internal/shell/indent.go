package shell

import (
	"bytes"
	"encoding/json"
)

// indented puts a text of JSON onto lines of its own.
func indented(text []byte, indent string) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, text, "", indent)
	return b.String(), err
}
