module allium

go 1.26

require (
	github.com/klauspost/compress v1.20.3
	github.com/miekg/dns v1.1.73
	github.com/xdg-go/stringprep v1.0.4
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.54.0
	golang.org/x/net v0.57.0
	golang.org/x/text v0.40.0
	pgregory.net/rapid v1.3.0
)

require golang.org/x/sys v0.47.0 // indirect
