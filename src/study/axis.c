/* SPDX-License-Identifier: BSD-3-Clause */
/* Axes: from values to positions, and round ticks. Every range has an axis: an empty one, a single
 * value, and zeros on a logarithmic axis, which are drawn at its lower end. */
#include "study/plot.h"

#include <math.h>
#include <string.h>

enum { TICKS_WANTED = 6 };

/* A document may have any number; beyond this one its neighbours could not be computed. */
#define LARGEST 1e300

void axis_open(struct axis *axis, const char *title, enum axis_kind kind, enum axis_form form)
{
    *axis = (struct axis){.title = title,
                          .kind = kind,
                          .form = form,
                          .low = INFINITY,
                          .high = -INFINITY,
                          .least = INFINITY};
}

void axis_fit(struct axis *axis, double value)
{
    if (!(fabs(value) <= LARGEST))
        return;
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
    /* Less than 1 ns remains when the cost of the clock is subtracted: it would stretch a
     * logarithmic axis by decades. */
    if (value > (axis->kind == AXIS_TIME ? 1e-3 : 0))
        axis->least = fmin(axis->least, value);
}

double axis_nines(double percent)
{
    return -log10(1 - percent / 100);
}

/* The next value at or above that is 1, 2 or 5 times a power of ten. */
static double round_up(double value)
{
    double power = pow(10, floor(log10(value)));
    static const double steps[] = {1, 2, 5};
    for (size_t i = 0; i < LENGTH(steps); i++)
        if (value <= steps[i] * power * (1 + 1e-9))
            return steps[i] * power;
    return 10 * power;
}

static double round_down(double value)
{
    double power = pow(10, floor(log10(value) + 1e-9));
    return value >= 5 * power * (1 - 1e-9)   ? 5 * power
           : value >= 2 * power * (1 - 1e-9) ? 2 * power
                                             : power;
}

static double step_of(const struct axis *axis)
{
    return round_up((axis->high - axis->low) / TICKS_WANTED);
}

static void settle_linear(struct axis *axis)
{
    if (axis->from_zero)
        axis->low = fmin(axis->low, 0);
    /* At least as wide as the resolution of numbers of that size. */
    double width = axis->high - axis->low, least = fmax(fabs(axis->high) * 1e-6, 1e-9);
    if (width < least) {
        axis->low = axis->low >= 0 ? fmax(axis->low - fmax(fabs(axis->low) * 0.1, least), 0)
                                   : axis->low - least;
        axis->high += fmax(fabs(axis->high) * 0.1, least);
    }
    double step = step_of(axis);
    axis->low = floor(axis->low / step + 1e-6) * step;
    axis->high = ceil(axis->high / step - 1e-6) * step;
}

/* Below half a decade, a logarithmic axis has the ends and ticks of a linear one. */
static bool narrow(const struct axis *axis)
{
    return axis->high < axis->low * 3;
}

static void settle_log(struct axis *axis)
{
    axis->low = axis->least;
    if (axis->kind == AXIS_SIZE) {
        if (axis->high < axis->low * 2) {
            axis->low /= 2;
            axis->high *= 2;
        }
        return;
    }
    /* A line along the edge looks like part of the frame. */
    axis->low *= 0.97;
    axis->high *= 1.01;
    double step = step_of(axis), down = floor(axis->low / step) * step;
    bool linear = narrow(axis) && down > 0;
    axis->low = linear ? down : round_down(axis->low);
    axis->high = linear ? ceil(axis->high / step) * step : round_up(axis->high);
}

void axis_settle(struct axis *axis)
{
    if (axis->settled)
        return;
    axis->settled = true;
    if (!isfinite(axis->low) || !isfinite(axis->high)) {
        axis->low = axis->form == AXIS_LOG ? 0.1 : 0;
        axis->least = 0.1;
        axis->high = 1;
    }
    if (axis->form == AXIS_EITHER)
        axis->form =
            isfinite(axis->least) && axis->high > 10 * axis->least ? AXIS_LOG : AXIS_LINEAR;
    if (axis->form == AXIS_LOG && !isfinite(axis->least))
        axis->form = AXIS_LINEAR;
    if (axis->kind == AXIS_PERCENTILE)
        axis->high = fmax(axis->high, 1);
    else if (axis->kind == AXIS_SLOT)
        axis->low -= 0.6, axis->high += 0.6;
    else if (axis->form == AXIS_LOG)
        settle_log(axis);
    else
        settle_linear(axis);
}

double axis_place(const struct axis *axis, double value)
{
    double share = axis->form == AXIS_LOG
                       ? log(fmax(value, axis->low) / axis->low) / log(axis->high / axis->low)
                       : (value - axis->low) / (axis->high - axis->low);
    share = isfinite(share) ? fmin(fmax(share, 0), 1) : 0;
    return axis->from + share * (axis->to - axis->from);
}

/* ---- ticks ---- */

static void number_text(double value, char *text, size_t room)
{
    static const struct {
        double scale;
        const char *name;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e5, " k"}};
    for (size_t i = 0; i < LENGTH(units); i++) {
        if (fabs(value) >= units[i].scale * (1 - 1e-9)) {
            double scale = units[i].scale > 1e5 ? units[i].scale : 1e3;
            snprintf(text, room, "%.4g%s", value / scale, units[i].name);
            return;
        }
    }
    snprintf(text, room, "%.6g", fabs(value) < 1e-12 ? 0 : value);
}

/* Times are in microseconds, as the title of the axis says. */
static void tick_text(const struct axis *axis, double value, char *text, size_t room)
{
    if (axis->kind == AXIS_TIME)
        snprintf(text, room, "%.7g", fabs(value) < 1e-12 ? 0 : value);
    else
        number_text(value, text, room);
}

static size_t ticks_linear(const struct axis *axis, struct tick *ticks, size_t room)
{
    double step = step_of(axis), first = ceil(axis->low / step - 1e-6);
    size_t n = 0;
    for (; n < room && (first + (double)n) * step <= axis->high + step * 1e-6; n++) {
        ticks[n] = (struct tick){.value = (first + (double)n) * step, .spare = n % 2};
        tick_text(axis, ticks[n].value, ticks[n].text, sizeof ticks[n].text);
    }
    return n;
}

static size_t ticks_log(const struct axis *axis, struct tick *ticks, size_t room)
{
    static const double steps[] = {1, 2, 5};
    double decades = log10(axis->high / axis->low);
    int stride = decades > 14 ? 4 : decades > 7 ? 2 : 1;
    size_t n = 0, kinds = decades <= 2.4 ? LENGTH(steps) : 1;
    int last = (int)floor(log10(axis->high) + 1e-9);
    for (int power = (int)floor(log10(axis->low) + 1e-9); power <= last; power += stride) {
        for (size_t i = 0; i < kinds && n < room; i++) {
            double value = steps[i] * pow(10, power);
            if (value < axis->low * (1 - 1e-9) || value > axis->high * (1 + 1e-9))
                continue;
            ticks[n] = (struct tick){.value = value, .spare = i > 0};
            tick_text(axis, value, ticks[n].text, sizeof ticks[n].text);
            n++;
        }
    }
    return n < 3 || narrow(axis) ? ticks_linear(axis, ticks, room) : n;
}

static size_t ticks_size(const struct axis *axis, struct tick *ticks, size_t room)
{
    /* Only messages of no bytes. */
    if (axis->low <= 0)
        return ticks_linear(axis, ticks, room);
    int low = (int)ceil(log2(axis->low) - 1e-9), high = (int)floor(log2(axis->high) + 1e-9);
    int stride = 1 + (high - low) / 11;
    size_t n = 0;
    for (int power = low; power <= high && n < room; power += stride, n++) {
        ticks[n] = (struct tick){.value = ldexp(1, power), .spare = n % 2};
        if (power < 0 || power > 63)
            snprintf(ticks[n].text, sizeof ticks[n].text, "%.3g", ticks[n].value);
        else
            size_text((uint64_t)1 << power, ticks[n].text, sizeof ticks[n].text);
    }
    return n;
}

static size_t ticks_percentile(const struct axis *axis, struct tick *ticks, size_t room)
{
    static const char *const texts[] = {"0",     "50",     "90",      "99",       "99.9",
                                        "99.99", "99.999", "99.9999", "99.99999", "99.999999"};
    static const double places[] = {0, 0.30102999566, 1, 2, 3, 4, 5, 6, 7, 8};
    size_t n = 0;
    for (; n < LENGTH(places) && n < room && places[n] <= axis->high + 1e-6; n++) {
        ticks[n] = (struct tick){.value = places[n], .spare = n == 0 && axis->high > 4};
        snprintf(ticks[n].text, sizeof ticks[n].text, "%s", texts[n]);
    }
    return n;
}

size_t axis_ticks(const struct axis *axis, struct tick *ticks, size_t room)
{
    switch (axis->kind) {
    case AXIS_SIZE:
        return ticks_size(axis, ticks, room);
    case AXIS_PERCENTILE:
        return ticks_percentile(axis, ticks, room);
    case AXIS_SLOT:
        return 0;
    default:
        return axis->form == AXIS_LOG ? ticks_log(axis, ticks, room)
                                      : ticks_linear(axis, ticks, room);
    }
}
