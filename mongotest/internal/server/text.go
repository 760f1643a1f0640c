package server

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
)

func uuidString(id [16]byte) string {
	s := hex.EncodeToString(id[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func base64String(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
