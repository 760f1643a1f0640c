package server

func init() {
	register(&Command{Name: "endSessions", Where: Anywhere, Run: func(r *Request, dst []byte) ([]byte, error) {
		return dst, nil
	}})
}
