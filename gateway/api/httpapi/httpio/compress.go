package httpio

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// compressed wraps handlers. Level 3 takes less than half the time of the default, 6 ms against 14 for 2 MB of JSON,
// and answers are an eighth larger. The query of such an answer takes some 30 ms.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(3))
	if err != nil {
		panic(err) // the level is a constant
	}
	return wrap
}()

// Compressed is a handler whose responses are compressed for clients that accept it.
func Compressed(h http.Handler) http.Handler { return compressed(h) }
