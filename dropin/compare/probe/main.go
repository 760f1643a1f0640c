// Command probe prints what the types of package bson do: their JSON, their texts, how they are
// encoded and decoded, and the errors. The test of package compare builds it with the official
// driver and with the drop-in, and compares what both print line by line.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"allium/dropin/compare/tags"
	"go.mongodb.org/mongo-driver/v2/bson"
)

var out = bufio.NewWriter(os.Stdout)

// say prints a line: what was done, and what came of it.
func say(what string, values ...any) {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprint(v)
	}
	fmt.Fprintf(out, "%s\t%s\n", what, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(strings.Join(parts, " | ")))
}

// try prints what f returns, or what it panics with.
func try(what string, f func() any) {
	defer func() {
		if r := recover(); r != nil {
			say(what, "panic", fmt.Sprintf("%T", r), r)
		}
	}()
	say(what, f())
}

func main() {
	defer out.Flush()
	time.Local = time.FixedZone("there", -5*60*60) // the local zone is not that of the machine
	texts()
	encoding()
	decoding()
	broken()
	raws()
	vectors()
	decimals()
	streams()
	registries()
	tags.Probe(bson.Marshal, bson.Unmarshal, say)
	hooks()
	mgo()
	messages()
	driverErrors()
	small()
	clientOptions()
}
