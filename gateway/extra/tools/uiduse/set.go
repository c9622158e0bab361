package uiduse

import (
	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
)

// pageNumbers is how many numbers a page of a Set has.
const pageNumbers = 512

// pageBytes is about what a page takes, in the map too.
const pageBytes = pageNumbers/8 + 64

// Set is a set of UIDs of one kind, by their numbers. Sixteen million numbers that were given one after another take
// 4 MiB, as many as there are UIDs of 3 bytes; one that was drawn at random from more takes pageBytes.
type Set struct {
	// Budget is what the memory is counted in. It may be that of several sets.
	Budget *wholetable.Budget
	pages  map[uint64]*[pageNumbers / 64]uint64
}

// Add adds a UID. It returns wholetable.ErrMuch if the set takes more than its budget.
func (s *Set) Add(u []byte) error {
	n := encoding.UIDNumber(u)
	page := s.pages[n/pageNumbers]
	if page == nil {
		if err := s.Budget.Take(pageBytes); err != nil {
			return err
		}
		if s.pages == nil {
			s.pages = map[uint64]*[pageNumbers / 64]uint64{}
		}
		page = new([pageNumbers / 64]uint64)
		s.pages[n/pageNumbers] = page
	}
	page[n%pageNumbers/64] |= 1 << (n % 64)
	return nil
}

// Has reports whether a UID is in the set.
func (s *Set) Has(u []byte) bool {
	n := encoding.UIDNumber(u)
	page := s.pages[n/pageNumbers]
	return page != nil && page[n%pageNumbers/64]>>(n%64)&1 == 1
}
