// Package leaks finds secrets in what the driver says. The tests of the whole suite use the
// secrets that are listed here, and nothing that the driver logs, publishes, prints or returns may
// hold one of them, in any of the ways in which bytes are written.
//
//	go run ./internal/leaks/cmd/leaks go test ./...
package leaks

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Planted are secrets that tests use and that occur nowhere else, by a name that may be printed.
// TestPlanted checks that tests still use them.
var Planted = map[string]string{
	"the password of the Examples":                   "open sesame",
	"the password of internal/unified":               "pencil-of-unified-5d1c",
	"the access token of internal/unified":           "token of unified",
	"the password of campaigns":                      "swordfish-7f3a",
	"the password with characters of a URI":          "p@ss/word",
	"the password of internal/auth":                  "p4ssw0rd",
	"the secret key of the AWS KMS":                  "fake-secret-access-key",
	"the secret of the Azure KMS":                    "fake-client-secret",
	"the local master key of client-side encryption": localMasterKey,
}

// localMasterKey is that of the specification's tests, as bytes.
var localMasterKey = func() string {
	key, err := base64.StdEncoding.DecodeString(
		"Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRCZGJkTXVyZG9uSjFk")
	if err != nil {
		panic(err)
	}
	return string(key)
}()

// Document is a text that documents of campaigns hold. Commands are logged and published with
// their documents; nothing else may hold it.
const Document = "planted-document-8c41"

// form is a way in which a secret may be written.
type form struct{ name, text string }

var forms = func() (all []form) {
	for name, secret := range Planted {
		for _, text := range written(secret) {
			all = append(all, form{name, text})
		}
	}
	return all
}()

// written returns the ways in which bytes may be written.
func written(secret string) []string {
	b := []byte(secret)
	list := []string{secret, hex.EncodeToString(b), fmt.Sprintf("%X", b), strings.Trim(fmt.Sprint(b), "[]"),
		url.QueryEscape(secret), url.PathEscape(secret),
		// Whatever stands before it, the bytes of a text fall on one of three places in base64.
		strings.TrimRight(base64.StdEncoding.EncodeToString(b), "=")}
	if quoted, err := json.Marshal(secret); err == nil {
		list = append(list, strings.Trim(string(quoted), `"`))
	}
	for skip := 1; skip < 3; skip++ {
		if at := 3 - skip; len(b) >= at+6 {
			whole := (len(b) - at) / 3 * 3
			list = append(list, base64.StdEncoding.EncodeToString(b[at:at+whole]))
		}
	}
	// Without the last characters of base64, which depend on what follows.
	list[6] = base64.StdEncoding.EncodeToString(b[:len(b)/3*3])
	kept := list[:0]
	for _, text := range list {
		if len(text) >= 8 { // shorter ones turn up by chance
			kept = append(kept, text)
		}
	}
	return kept
}

// Find returns the name of a planted secret that a text holds, "" if it holds none.
func Find(text string) string {
	for _, f := range forms {
		if strings.Contains(text, f.text) {
			return f.name
		}
	}
	return ""
}

// Printed returns the name of a planted secret that shows when a value is printed, "" if none
// does.
func Printed(v any) string {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if name := Find(fmt.Sprintf(verb, v)); name != "" {
			return name + " (" + verb + ")"
		}
	}
	return ""
}

// Line judges a line of a driver's log as the environment variable MONGODB_LOG_PATH makes it.
func Line(line string) string {
	if name := Find(line); name != "" {
		return name
	}
	if strings.Contains(line, Document) && strings.Contains(line, " component=") &&
		!strings.Contains(line, " component=command") {
		return "a document"
	}
	return ""
}
