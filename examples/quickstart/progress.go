package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress draws a bar on a terminal, and nothing elsewhere.
type progress struct {
	out  io.Writer
	last time.Time
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return &progress{}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{out: w}
}

const barWidth = 40

// show redraws the bar, ten times a second at most.
func (p *progress) show(done, of int, docs int64) {
	if p.out == nil || done < of && time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	n := barWidth * done / of
	fmt.Fprintf(p.out, "\r[%s%s] %d of %d files, %d declarations", strings.Repeat("=", n),
		strings.Repeat(" ", barWidth-n), done, of, docs)
}

// end leaves the bar's line.
func (p *progress) end() {
	if p.out != nil {
		fmt.Fprintln(p.out)
	}
}
