package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The test binary is the command, too, and does what this variable says.
const behaviour = "LEAKS_TEST_BEHAVIOUR"

func TestMain(m *testing.M) {
	log := func(lines ...string) {
		f, err := os.OpenFile(os.Getenv("MONGODB_LOG_PATH"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		for _, line := range lines {
			fmt.Fprintln(f, line)
		}
	}
	switch os.Getenv(behaviour) {
	case "":
		os.Exit(m.Run())
	case "quiet":
	case "fine":
		log("msg=one", "msg=two")
		fmt.Println("three")
	case "logs":
		log("msg=one", "msg=\"open sesame\" component=command", "msg=two")
	case "prints":
		log("msg=one")
		fmt.Println("the password is open sesame")
	case "fails":
		log("msg=one")
		os.Exit(3)
	}
}

func TestRun(t *testing.T) {
	for what, want := range map[string]struct {
		status int
		fails  bool
		text   string
	}{
		"fine":   {0, false, "2 lines of logs and 1 of output, 0 with a secret"},
		"logs":   {1, true, "LEAK the password of the Examples in a log"},
		"prints": {1, true, "LEAK the password of the Examples in the output"},
		"quiet":  {1, true, "0 lines of logs"},
		"fails":  {3, false, "1 lines of logs"},
	} {
		t.Setenv(behaviour, what)
		var out bytes.Buffer
		status, err := run([]string{os.Args[0]}, &out)
		if status != want.status || (err != nil) != want.fails || !strings.Contains(out.String(), want.text) {
			t.Errorf("%s: status %d, error %v, output\n%s", what, status, err, out.String())
		}
	}
}
