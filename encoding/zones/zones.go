// Package zones has the time zones: those of one release of the IANA's database, which is part of the
// program. The machine's own zones are not used: their release differs between machines, so two
// gateways could give two answers, and cache one of them.
package zones

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"sync"
	"time"
)

// Release is the release of the database.
const Release = "2025c"

// archive is lib/time/zoneinfo.zip of a Go release, which has a file for each name.
//
//go:embed zoneinfo.zip
var archive []byte

// files are the files of the archive, by the names of zones.
var files = sync.OnceValues(func() (map[string]*zip.File, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	byName := map[string]*zip.File{}
	for _, f := range z.File {
		byName[f.Name] = f
	}
	return byName, nil
})

// Load returns the zone with an IANA name, such as Europe/Berlin; UTC without one.
func Load(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	byName, err := files()
	if err != nil {
		return nil, fmt.Errorf("time zones, release %s: %w", Release, err)
	}
	f := byName[name]
	if f == nil || f.FileInfo().IsDir() {
		return nil, fmt.Errorf("unknown time zone %s", name)
	}

	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("time zone %s: %w", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("time zone %s: %w", name, err)
	}
	return time.LoadLocationFromTZData(name, data)
}
