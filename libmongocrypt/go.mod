module allium/libmongocrypt

go 1.26

require allium v0.0.0-00010101000000-000000000000

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/xdg-go/stringprep v1.0.4 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

replace allium => ../
