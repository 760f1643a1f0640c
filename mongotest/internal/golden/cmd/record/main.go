// Command record records what a real MongoDB server answers to scripted commands, and checks
// recordings against a server that is reached by address.
//
//	cd mongotest/internal/golden/cmd/record
//	go run . -topology replicaset -nodes a:1,b:2,c:3 -in cases -out recorded
//	go run . -verify -topology standalone -nodes a:1 -in ../../../../testdata/golden/standalone
//
// Every case is run twice while recording: what differs between the two runs is recorded as
// {"$any": type}.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium/mongotest/internal/golden"
)

func main() {
	topology := flag.String("topology", "standalone", "`kind` of deployment: standalone, replicaset or sharded")
	nodes := flag.String("nodes", "127.0.0.1:27017", "`host:port` of all members or mongoses, separated by commas")
	in := flag.String("in", "", "`folder` of case files")
	out := flag.String("out", "", "`folder` for the recordings; a folder per topology is made in it")
	verify := flag.Bool("verify", false,
		"compare the server's replies with those in the case files instead of recording")
	only := flag.String("only", "", "only cases whose name contains this `text`")
	flag.Parse()
	if *in == "" || *out == "" && !*verify {
		flag.Usage()
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(*in, "*.json*"))
	if err != nil || len(files) == 0 {
		fmt.Fprintf(os.Stderr, "record: no case files in %s\n", *in)
		os.Exit(2)
	}
	r := &golden.Runner{Topology: *topology, Nodes: strings.Split(*nodes, ",")}
	good, bad := 0, 0
	for _, file := range files {
		cases, err := golden.Load(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "record:", err)
			os.Exit(2)
		}
		var done []golden.Case
		for _, c := range cases {
			if !strings.Contains(c.Name, *only) || len(c.Topologies) > 0 && !slices.Contains(c.Topologies, *topology) {
				continue
			}
			if err := run(r, &c, *topology, *verify); err != nil {
				bad++
				fmt.Printf("%s/%s: %v\n", filepath.Base(file), c.Name, err)
				continue
			}
			good++
			done = append(done, c)
		}
		if !*verify {
			if err := golden.Save(filepath.Join(*out, *topology, strings.TrimSuffix(filepath.Base(file), ".gz")),
				done); err != nil {
				fmt.Fprintln(os.Stderr, "record:", err)
				os.Exit(2)
			}
		}
	}
	fmt.Printf("%s: %d good, %d bad\n", *topology, good, bad)
	if bad > 0 {
		os.Exit(1)
	}
}

// run verifies a case, or records it into c.
func run(r *golden.Runner, c *golden.Case, topology string, verify bool) error {
	if !verify {
		return r.Record(c, topology)
	}
	replies, err := r.Run(*c)
	if err != nil {
		return err
	}
	if d := golden.Compare(*c, replies); d != "" {
		return fmt.Errorf("differs: %s", d)
	}
	return nil
}
