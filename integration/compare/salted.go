package compare

// LostBucket is the name of a rule: a salted OpenTSDB now and then answers without the rows of one salt bucket, and
// says nothing. net.opentsdb.core.SaltScanner.validateAndTriggerCallback counts a scanner as finished before it keeps
// the scanner's rows, so the last scanner may merge what is kept while another still waits to keep its own. Asked
// again, it answers all. Because that takes further questions, it is no Rule: Salted applies it.
const LostBucket = "a salted OpenTSDB loses a bucket now and then"

// Salted asks OpenTSDB on salted tables and judges its answer. An answer that differs counts as OpenTSDB's loss only if
// both further ones are judged equal. The answer of ours that judge compares with must be the same each time.
func Salted(
	ask func() Answer, judge func(want Answer) (Report, []string, error),
) (want Answer, r Report, applied []string, err error) {
	want = ask()
	r, applied, err = judge(want)
	if err != nil || r.Equal() {
		return want, r, applied, err
	}

	for range 2 {
		again, _, err := judge(ask())
		if err != nil || !again.Equal() {
			return want, r, applied, nil
		}
	}
	return want, Report{}, append(applied, LostBucket), nil
}

// WithSalted is WithReference for an OpenTSDB on salted tables, see Salted.
func WithSalted(ask func() Answer, got Answer) (r Report, applied []string, err error) {
	_, r, applied, err = Salted(ask, func(want Answer) (Report, []string, error) { return WithReference(want, got) })
	return r, applied, err
}
