package server

func init() {
	register(&Command{Name: "ping", NoAuth: true, Where: Anywhere, Run: func(r *Request, dst []byte) ([]byte, error) {
		return dst, nil
	}})
}
