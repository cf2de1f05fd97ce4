// What k6 is told to do; the rows in tools.py fill in the environment.
import http from 'k6/http';

const { URL, CONNECTIONS, SECONDS, RATE, PER_REQUEST } = __ENV;

// A virtual user has one connection, and waits for its answer.
const load = RATE
  ? {
      executor: 'constant-arrival-rate',
      rate: Number(RATE),
      timeUnit: '1s',
      preAllocatedVUs: Number(CONNECTIONS),
    }
  : { executor: 'constant-vus', vus: Number(CONNECTIONS) };

export const options = {
  scenarios: { load: { ...load, duration: `${SECONDS}s`, gracefulStop: '0s' } },
  discardResponseBodies: true,
  insecureSkipTLSVerify: true,
  noConnectionReuse: PER_REQUEST === '1',
};

export default function () {
  http.get(URL);
}
