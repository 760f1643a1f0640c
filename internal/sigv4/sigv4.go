// Package sigv4 signs requests as Amazon Web Services want it (AWS Signature Version 4). Package
// auth signs with it what the mechanism MONGODB-AWS sends, and mongotest checks that.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// TimeFormat is that of Request.Time.
const TimeFormat = "20060102T150405Z"

const algorithm = "AWS4-HMAC-SHA256"

// Request is what is signed.
type Request struct {
	Method, Path, Query string // in their canonical forms
	Headers             []Header
	Body                string
	Time                string // UTC, in TimeFormat; the header x-amz-date says the same
	Region, Service     string
}

// Header is a header of a request: its name in lower case, and its value without space around it.
type Header struct{ Name, Value string }

// Authorization returns the value of the header Authorization.
func Authorization(r Request, keyID, secret string) string {
	day, _, _ := strings.Cut(r.Time, "T")
	scope := strings.Join([]string{day, r.Region, r.Service, "aws4_request"}, "/")
	headers := slices.SortedFunc(slices.Values(r.Headers), func(a, b Header) int {
		return strings.Compare(a.Name, b.Name)
	})
	var names []string
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.Path + "\n" + r.Query + "\n")
	for _, h := range headers {
		names = append(names, h.Name)
		canonical.WriteString(h.Name + ":" + h.Value + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + hash(r.Body))
	text := strings.Join([]string{algorithm, r.Time, scope, hash(canonical.String())}, "\n")

	key := []byte("AWS4" + secret)
	for _, part := range []string{day, r.Region, r.Service, "aws4_request"} {
		key = mac(key, part)
	}
	return algorithm + " Credential=" + keyID + "/" + scope + ", SignedHeaders=" + signed + ", Signature=" +
		hex.EncodeToString(mac(key, text))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
