package differential

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Put is a request that puts points, rollups or histograms.
type Put struct{ Path, Body string }

// putsABody bounds a request, as collectors do.
const putsABody = 200

// distinctSeries draws so many series with different tags.
func distinctSeries(r *rand.Rand, metric string, n int) (all []Series) {
	seen := map[string]bool{}
	for len(all) < n {
		tags := randomTags(r)
		if id := fmt.Sprint(tags); !seen[id] {
			seen[id] = true
			all = append(all, Series{Metric: metric, Tags: tags})
		}
	}
	return all
}

// PutDigest distinguishes requests from others.
func PutDigest(puts []Put) string {
	h := sha256.New()
	for _, p := range puts {
		fmt.Fprintf(h, "%s %s\n", p.Path, p.Body)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// bodies deals points, by path, over requests.
func bodies(points map[string][]json.RawMessage) (puts []Put) {
	for path, all := range points {
		for some := range slices.Chunk(all, putsABody) {
			body, err := json.Marshal(some)
			if err != nil {
				panic(err) // they were encoded before
			}
			// Answered once all are stored, with their number.
			puts = append(puts, Put{path + "?details&sync", string(body)})
		}
	}
	// The order of a map is chance, and a seed must give the same requests each time.
	slices.SortFunc(puts, func(a, b Put) int { return strings.Compare(a.Path+a.Body, b.Path+b.Body) })
	return puts
}
